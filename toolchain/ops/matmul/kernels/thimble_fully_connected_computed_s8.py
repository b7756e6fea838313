"""`thimble_fully_connected_computed_s8`: a fully connected layer whose filters are not packed: they
are computed at run time, or int8 does not hold them less their zero point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.requant import requant
from toolchain.ops.arithmetic.single_rounding import single_rounding
from toolchain.ops.matmul.kernels import dense, products

FUNCTION = "thimble_fully_connected_computed_s8"


def kernel(op: kit.Operator[Any]) -> kit.Kernel:
    """The kernel of any filters.

    Raises UnsupportedError as `dense_scaling` does. Sums wrap, as LiteRT's.
    """
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    sizes, factor = dense.sizes_of(op), float(dense.sum_factors(op)[0])
    bias = np.abs(kit.bias_of(op, sizes["units"]).astype(np.int64))
    reach = [
        max(127 - operand.q.zero_point, 128 + operand.q.zero_point) for operand in (x, weights)
    ]
    largest = min(int(bias.max(initial=0)) + sizes["depth"] * reach[0] * reach[1], 1 << 31)
    clamp = kit.clamp_range(op.attributes.activation, y)
    fit = single_rounding(factor, largest, *(bound - y.q.zero_point for bound in clamp))
    if fit is None:
        raise dense.no_multiplier(op, factor)
    shape: dict[str, kit.Argument] = {
        "batch": kit.numbers((1, 1, 1)),
        "rows": sizes["rows"],
        "depth": sizes["depth"],
        "columns": sizes["units"],
        "multiplier": fit.multiplier,
        "code": packing.once_code(fit, largest),
    }
    for name, operand in (("x", x), ("y", weights)):
        members: dict[str, kit.Argument] = {"outer": sizes["depth"], "inner": 1}
        members |= {"batch": kit.numbers((0, 0, 0)), "zero_point": operand.q.zero_point}
        shape[name] = kit.Struct("thimble_matmul_operand", members)
    arguments: dict[str, kit.Argument] = {
        "shape": kit.Struct("thimble_matmul_shape", shape),
        "low": fit.low,
        "requant": requant(y.q.zero_point, *clamp),
        "input": kit.Input(kit.INPUT),
        "filters": kit.Input(kit.WEIGHTS),
        "bias": kit.Input(kit.BIAS),
        "scratch": kit.Scratch(),
        "output": kit.Output(0),
    }
    call = kit.Call(FUNCTION, arguments)
    return kit.Kernel(
        (call,),
        _extents,
        scratch_bytes=products.column_bytes(call),
        find_terms=lambda: products.product_terms(call),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    rows, depth, units = (call[f"shape.{name}"] for name in ("rows", "depth", "columns"))
    read = {kit.INPUT: kit.whole(rows * depth), kit.WEIGHTS: kit.whole(units * depth)}
    if touched.has(kit.BIAS):
        read[kit.BIAS] = kit.whole(units, 4)
    return kit.Extents(read, {0: kit.whole(rows * units)}, scratch=products.column_bytes(call))
