"""Kernels that reduce axes: their calls, the bytes these touch, and their cost terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Struct,
    Symbol,
    Terms,
    Touched,
)
from toolchain.ops.reduction.common import (
    averaged,
    blocks,
    reduce_attributes,
    reduced_axes,
    scaling,
    single_scaling,
)

_SIZES = ("outer", "first", "middle", "second", "inner")
"""Kept, reduced, kept, reduced, kept elements (see `common.blocks`)."""


def shape_of(op: Op, graph: Graph) -> dict[str, Argument]:
    """The members of a `thimble_reduce_shape`. Raises UnsupportedError as `blocks` does."""
    return dict(zip(_SIZES, blocks(op, graph), strict=True))


def reduce_extents(path: str) -> Callable[[Touched], Extents]:
    """The bytes that a call touches. Its argument at `path`, such as `params.shape`, holds the
    sizes.
    """

    def rule(touched: Touched) -> Extents:
        outer, first, middle, second, inner = (touched.call[f"{path}.{n}"] for n in _SIZES)
        kept, x, y = outer * middle * inner, touched.inputs[0], touched.outputs[0]
        assert x is not None
        read = {0: whole(kept * first * second, x.element_bytes)}
        if touched.has(1):  # the sums of the parts before
            read[1] = whole(kept, y.element_bytes)
        return Extents(read, {0: whole(kept, y.element_bytes)})

    return rule


def reduction_terms(shape: Mapping[str, Argument]) -> Terms:
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


def _size(shape: Mapping[str, Argument], name: str) -> int:
    size = shape[name]
    assert isinstance(size, int)
    return size


def in_place() -> tuple[SafeOverlap, ...]:
    """The output may lie on the input: each element is written after all that it
    reduces are read.
    """
    return (SafeOverlap(0),)


def sum_kernel(op: Op, graph: Graph, *, mean: bool) -> Kernel:
    """Sum or mean of int8."""
    x, y, shape = graph.input(op, 0), graph.output(op), shape_of(op, graph)
    multiplier, shift = scaling(op, graph, mean=mean)
    once = 0
    if reduce_attributes(op).rounding is Rounding.ONNX:
        fit = single_scaling(op, graph, mean=mean)
        multiplier, shift, once = fit.multiplier, 0, 31 - fit.shift
    count = math.prod(x.shape[axis] for axis in reduced_axes(op, graph))
    params = Struct(
        "thimble_reduce_sum_params",
        {
            "shape": Struct("thimble_reduce_shape", shape),
            "input_sum": x.q.zero_point * count,
            "output_offset": y.q.zero_point,
            "multiplier": multiplier,
            "shift": shift,
            "once": once,
            "count": averaged(op, graph, mean=mean),
        },
    )
    call = Call("thimble_reduce_sum_s8", {"params": params, "input": Input(0), "output": Output(0)})
    return Kernel(
        (call,),
        reduce_extents("params.shape"),
        find_overlaps=in_place,
        find_terms=lambda: reduction_terms(shape),
    )


def int16_sum_kernel(op: Op, graph: Graph, *, mean: bool) -> Kernel:
    """Sum or mean of int16. Its sums of int32 wrap, as TFLite's do."""
    multiplier, shift = scaling(op, graph, mean=mean)
    call = Call(
        "thimble_reduce_sum_s16",
        {
            "shape": Struct("thimble_reduce_shape", shape_of(op, graph)),
            "multiplier": multiplier,
            "shift": shift,
            "input": Input(0),
            "output": Output(0),
        },
    )
    return Kernel((call,), reduce_extents("shape"), find_overlaps=in_place)


def extremum_kernel(op: Op, graph: Graph, function: str, *, smallest: bool) -> Kernel:
    """Largest or smallest element. For the smallest, all bits are flipped before values are
    compared.
    """
    element = "int8_t" if graph.output(op).dtype is DType.BOOL else ""  # bytes 0 and 1
    call = Call(
        function,
        {
            "shape": Struct("thimble_reduce_shape", shape_of(op, graph)),
            "flip": -1 if smallest else 0,
            "input": Input(0, element=element),
            "output": Output(0, element=element),
        },
    )
    return Kernel((call,), reduce_extents("shape"), find_overlaps=in_place)


def float_kernel(reduction: str) -> Callable[[Op, Graph, Core], Kernel]:
    """A function that chooses the float32 kernel of `reduction`: sum, mean, maximum or minimum."""

    def select(op: Op, graph: Graph, core: Core) -> Kernel:
        return float_reduction(op, graph, reduction)

    return select


def float_reduction(op: Op, graph: Graph, reduction: str) -> Kernel:
    """The float32 kernel of one operator."""
    return Kernel((_reducing(op, graph, "f32", reduction),), reduce_extents("params"))


def integer_reduction(op: Op, graph: Graph, reduction: str) -> Kernel:
    """The kernel of plain int32 or int64: sum, mean, maximum, minimum or product."""
    bits = 8 * graph.output(op).dtype.size_bytes
    call = _reducing(op, graph, f"s{bits}", reduction)
    return Kernel((call,), reduce_extents("params"), find_overlaps=in_place)


def _reducing(op: Op, graph: Graph, suffix: str, reduction: str) -> Call:
    params = Struct(
        "thimble_reduce_params",
        {"reduction": Symbol(f"THIMBLE_{reduction.upper()}"), **shape_of(op, graph)},
    )
    arguments: dict[str, Argument] = {"params": params, "input": Input(0), "output": Output(0)}
    return Call(f"thimble_reduce_{suffix}", arguments)
