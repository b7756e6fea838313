"""`thimble_fully_connected_s16`: a fully connected layer of int16 rows.

CMSIS-NN's kernel keeps 16 bits of the factor, LiteRT all of them.
"""

from __future__ import annotations

import numpy as np

from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    Packed,
    Struct,
    Touched,
    constant,
)
from toolchain.ops.matmul.kernels.units import sizes_of, sum_factors
from toolchain.ops.readers import int16
from toolchain.ops.weighted import (
    BIAS,
    INPUT,
    WEIGHTS,
)

FUNCTION = "thimble_fully_connected_s16"


def kernel(op: Op, graph: Graph, activation: Activation) -> Kernel:
    """Raises UnsupportedError if the output's scale is too small for the sums."""
    y = graph.output(op)
    low, high = clamp_range(activation, y)
    factors, sizes = sum_factors(op, graph), sizes_of(op, graph)
    bias = int16.bias_of(op, graph, BIAS, sizes["units"])
    largest = sizes["depth"] * 2.0**22 + np.abs(bias.astype(np.float64))  # 16 bits times 8, each
    if (largest * factors).max() >= 2.0**31:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: the output scale {y.q.scale:g} is too fine; its values may "
            "not fit 32 bits, where the reference wraps"
        )
    params = {**sizes, "per_channel": int(len(factors) > 1), "min": low, "max": high}
    arguments: dict[str, Argument] = {
        "params": Struct("thimble_fully_connected_s16_params", params),
        "input": Input(INPUT),
        "filters": Input(WEIGHTS),
        "bias": Packed("bias"),
        "factors": Packed("factors"),
        "output": Output(0),
    }
    return Kernel(
        (Call(FUNCTION, arguments),),
        _extents,
        constants=(
            constant("bias", bias, "int64"),
            constant("factors", factors.view(np.int64), "bytes of doubles: scale of a sum"),
        ),
    )


def _extents(touched: Touched) -> Extents:
    call = touched.call
    rows, depth, units = (call[f"params.{name}"] for name in ("rows", "depth", "units"))
    return Extents(
        {0: whole(rows * depth, 2), 1: whole(units * depth)},
        {0: whole(rows * units, 2)},
        {"bias": 8 * units, "factors": 8 * (units if call["params.per_channel"] else 1)},
    )
