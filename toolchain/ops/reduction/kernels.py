"""Kernels that reduce axes: their calls, the bytes these touch, and their cost terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from toolchain.ops import kit
from toolchain.ops.reduction import common
from toolchain.ops.reduction.common import Reduce

_SIZES = ("outer", "first", "middle", "second", "inner")
"""Kept, reduced, kept, reduced, kept elements (see `common.blocks`)."""


def shape_of(op: kit.Operator[Reduce]) -> dict[str, kit.Argument]:
    """The members of a `thimble_reduce_shape`. Raises UnsupportedError as `blocks` does."""
    return dict(zip(_SIZES, common.blocks(op), strict=True))


def reduce_extents(path: str) -> Callable[[kit.Touched], kit.Extents]:
    """The bytes that a call touches. Its argument at `path`, such as `params.shape`, holds the
    sizes.
    """

    def rule(touched: kit.Touched) -> kit.Extents:
        outer, first, middle, second, inner = (touched.call[f"{path}.{n}"] for n in _SIZES)
        kept, x, y = outer * middle * inner, touched.inputs[0], touched.outputs[0]
        assert x is not None
        read = {0: kit.whole(kept * first * second, x.element_bytes)}
        if touched.has(1):  # the sums of the parts before
            read[1] = kit.whole(kept, y.element_bytes)
        return kit.Extents(read, {0: kit.whole(kept, y.element_bytes)})

    return rule


def reduction_terms(shape: Mapping[str, kit.Argument]) -> kit.Terms:
    """Cost terms of mean, sum and partial sums: four channels at a time."""
    outer, first, middle, second, inner = (_size(shape, name) for name in _SIZES)
    places, fours, rest = outer * middle, inner // 4, inner % 4
    return {
        "call": 1.0,
        "place": places,
        "four": places * fours,
        "four row": places * fours * first,
        "four tap": places * fours * first * second,
        "lone group": places * bool(rest),
        "lone": places * rest,
        "lone row": places * rest * first,
        "lone tap": places * rest * first * second,
    }


def _size(shape: Mapping[str, kit.Argument], name: str) -> int:
    size = shape[name]
    assert isinstance(size, int)
    return size


def in_place() -> tuple[kit.SafeOverlap, ...]:
    """The output may lie on the input: each element is written after all that it
    reduces are read.
    """
    return (kit.SafeOverlap(0),)


def sum_kernel(op: kit.Operator[Reduce], *, mean: bool) -> kit.Kernel:
    """Sum or mean of int8."""
    x, y, shape = op.x, op.y, shape_of(op)
    multiplier, shift = common.scaling(op, mean=mean)
    once = 0
    if op.attributes.rounding is kit.Rounding.ONNX:
        fit = common.single_scaling(op, mean=mean)
        multiplier, shift, once = fit.multiplier, 0, 31 - fit.shift
    count = math.prod(x.shape[axis] for axis in common.reduced_axes(op))
    params = kit.Struct(
        "thimble_reduce_sum_params",
        {
            "shape": kit.Struct("thimble_reduce_shape", shape),
            "input_sum": x.q.zero_point * count,
            "output_offset": y.q.zero_point,
            "multiplier": multiplier,
            "shift": shift,
            "once": once,
            "count": common.averaged(op, mean=mean),
        },
    )
    call = kit.Call(
        "thimble_reduce_sum_s8", {"params": params, "input": kit.Input(0), "output": kit.Output(0)}
    )
    return kit.Kernel(
        (call,),
        reduce_extents("params.shape"),
        find_overlaps=in_place,
        find_terms=lambda: reduction_terms(shape),
    )


def int16_sum_kernel(op: kit.Operator[Reduce], *, mean: bool) -> kit.Kernel:
    """Sum or mean of int16. Its sums of int32 wrap, as TFLite's do."""
    multiplier, shift = common.scaling(op, mean=mean)
    call = kit.Call(
        "thimble_reduce_sum_s16",
        {
            "shape": kit.Struct("thimble_reduce_shape", shape_of(op)),
            "multiplier": multiplier,
            "shift": shift,
            "input": kit.Input(0),
            "output": kit.Output(0),
        },
    )
    return kit.Kernel((call,), reduce_extents("shape"), find_overlaps=in_place)


def extremum_kernel(op: kit.Operator[Reduce], function: str, *, smallest: bool) -> kit.Kernel:
    """Largest or smallest element. For the smallest, all bits are flipped before values are
    compared.
    """
    element = "int8_t" if op.y.dtype is kit.DType.BOOL else ""  # bytes 0 and 1
    call = kit.Call(
        function,
        {
            "shape": kit.Struct("thimble_reduce_shape", shape_of(op)),
            "flip": -1 if smallest else 0,
            "input": kit.Input(0, element=element),
            "output": kit.Output(0, element=element),
        },
    )
    return kit.Kernel((call,), reduce_extents("shape"), find_overlaps=in_place)


def float_kernel(reduction: str) -> Callable[[kit.Operator[Reduce], kit.Core], kit.Kernel]:
    """A function that chooses the float32 kernel of `reduction`: sum, mean, maximum or minimum."""

    def select(op: kit.Operator[Reduce], core: kit.Core) -> kit.Kernel:
        return float_reduction(op, reduction)

    return select


def float_reduction(op: kit.Operator[Reduce], reduction: str) -> kit.Kernel:
    """The float32 kernel of one operator."""
    return kit.Kernel((_reducing(op, "f32", reduction),), reduce_extents("params"))


def integer_reduction(op: kit.Operator[Reduce], reduction: str) -> kit.Kernel:
    """The kernel of plain int32 or int64: sum, mean, maximum, minimum or product."""
    bits = 8 * op.y.dtype.size_bytes
    call = _reducing(op, f"s{bits}", reduction)
    return kit.Kernel((call,), reduce_extents("params"), find_overlaps=in_place)


def _reducing(op: kit.Operator[Reduce], suffix: str, reduction: str) -> kit.Call:
    params = kit.Struct(
        "thimble_reduce_params",
        {"reduction": kit.Symbol(f"THIMBLE_{reduction.upper()}"), **shape_of(op)},
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "input": kit.Input(0),
        "output": kit.Output(0),
    }
    return kit.Call(f"thimble_reduce_{suffix}", arguments)
