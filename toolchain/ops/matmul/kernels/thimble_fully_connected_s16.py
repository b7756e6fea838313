"""`thimble_fully_connected_s16`: a fully connected layer of int16 rows.

CMSIS-NN's kernel keeps 16 bits of the factor, LiteRT all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.matmul.kernels import dense
from toolchain.ops.readers import int16

FUNCTION = "thimble_fully_connected_s16"


def kernel(op: kit.Operator[Any], core: kit.Core) -> kit.Kernel:
    """Raises UnsupportedError if the output's scale is too small for the sums."""
    y = op.y
    low, high = kit.clamp_range(op.attributes.activation, y)
    factors, sizes = dense.sum_factors(op), dense.sizes_of(op)
    bias = int16.bias_of(op, kit.BIAS, sizes["units"])
    largest = sizes["depth"] * 2.0**22 + np.abs(bias.astype(np.float64))  # 16 bits times 8, each
    if (largest * factors).max() >= 2.0**31:
        raise op.refused(
            f"the output scale {y.q.scale:g} is too fine; its values may "
            "not fit 32 bits, where the reference wraps"
        )
    params = {**sizes, "per_channel": int(len(factors) > 1), "min": low, "max": high}
    arguments: dict[str, kit.Argument] = {
        "params": kit.Struct("thimble_fully_connected_s16_params", params),
        "input": kit.Input(kit.INPUT),
        "filters": kit.Input(kit.WEIGHTS),
        "bias": kit.Packed("bias"),
        "factors": kit.Packed("factors"),
        "output": kit.Output(0),
    }
    return kit.Kernel(
        (kit.Call(FUNCTION, arguments),),
        _extents,
        constants=(
            kit.constant("bias", bias, "int64"),
            kit.constant("factors", factors.view(np.int64), "bytes of doubles: scale of a sum"),
        ),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    rows, depth, units = call.params("rows", "depth", "units")
    return kit.Extents(
        {0: kit.whole(rows * depth, 2), 1: kit.whole(units * depth)},
        {0: kit.whole(rows * units, 2)},
        {"bias": 8 * units, "factors": 8 * (units if call["params.per_channel"] else 1)},
    )
