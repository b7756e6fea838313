"""What the reductions share: attributes, shape rule, axes; and the int8 arithmetic of mean and sum.

`reference_ops::QuantizedMeanOrSum`: the sum of (x - zero point) over the axes is scaled by one
multiplier. A mean's multiplier also contains 1 / count, divided as integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.fixed_point import (
    INT32_MAX,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    wrap_int32,
)
from toolchain.ops.arithmetic.onnx_rounding import onnx_fit
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.arithmetic.single_rounding import SingleRounding
from toolchain.ops.convolution.packing import SHIFT_BIAS, shift_code
from toolchain.ops.elementwise.common import reach
from toolchain.ops.movement.copies import (
    int32_constant,
    integers,
    resolve_axis,
    sample_quantisation,
    sample_shape,
)
from toolchain.ops.reduction.requantise_sums import Law, RequantiseSums
from toolchain.ops.spec import (
    Array,
    Axis,
    Reach,
    ReadOp,
    Reduction,
    TensorType,
    TfliteNode,
    WrittenOp,
)

_TYPES = (DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32, DType.BOOL)


@dataclass(frozen=True)
class Reduce(Attributes):
    """`axes` may be negative or repeated. With `keep_dims` the reduced dimensions stay, as 1."""

    axes: tuple[int, ...]
    keep_dims: bool = False
    rounding: Rounding = Rounding.TFLITE


def reduce_attributes(op: Op) -> Reduce:
    """The operator's attributes."""
    assert isinstance(op.attributes, Reduce)
    return op.attributes


def reduced_axes(op: Op, graph: Graph) -> tuple[int, ...]:
    """The axes as ascending indices. Raises ValueError if one is out of range."""
    rank = len(graph.input(op, 0).shape)
    return tuple(sorted({resolve_axis(axis, rank) for axis in reduce_attributes(op).axes}))


def infer_reduction(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    """Shape rule. Raises ValueError for an element type or an axis that there is not."""
    x, axes = graph.input(op, 0), reduced_axes(op, graph)
    if x.dtype not in _TYPES:
        known = ", ".join(dtype.value for dtype in _TYPES)
        raise ValueError(f"reduction needs data of {known}, not {x.dtype.value}")
    if reduce_attributes(op).keep_dims:
        shape = tuple(1 if axis in axes else d for axis, d in enumerate(x.shape))
    else:
        shape = tuple(d for axis, d in enumerate(x.shape) if axis not in axes)
    return (TensorType(shape, x.dtype),)


def scaling(op: Op, graph: Graph, *, mean: bool) -> tuple[int, int]:
    """Multiplier (Q0.31) and left shift that take the sum of (x - zero point) to steps of the
    output.
    """
    x, y = graph.input(op, 0), graph.output(op)
    count = math.prod(x.shape[axis] for axis in reduced_axes(op, graph))
    multiplier, shift = quantize_multiplier(x.q.scale / y.q.scale)
    if not mean:
        return multiplier, shift
    spread = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << spread) // count, shift - spread


def single_scaling(op: Op, graph: Graph, *, mean: bool) -> SingleRounding:
    """The same with ONNX Runtime's rounding: once, in float32."""
    x, y = graph.input(op, 0), graph.output(op)
    count = math.prod(x.shape[axis] for axis in reduced_axes(op, graph))
    divisor = np.float32(y.q.scale) * np.float32(count if mean else 1)
    factor = float(np.float32(x.q.scale) / divisor)
    zero_point = y.q.zero_point
    return onnx_fit(factor, 255 * count, -128 - zero_point, 127 - zero_point)


def averaged(op: Op, graph: Graph, *, mean: bool) -> int:
    """The count that ONNX Runtime divides a mean by, rounding halves to even.

    0 if the operator is no such mean, or if input and output have different scales.
    """
    x, y = graph.input(op, 0), graph.output(op)
    onnx = reduce_attributes(op).rounding is Rounding.ONNX
    if not mean or not onnx or x.q.scale != y.q.scale:
        return 0
    return math.prod(x.shape[axis] for axis in reduced_axes(op, graph))


def reduction_reference(
    op: Op, graph: Graph, inputs: Sequence[Array], *, mean: bool
) -> tuple[Array, ...]:
    """The int8 or int16 reference of mean and sum."""
    x, y = graph.input(op, 0), graph.output(op)
    centred = inputs[0].astype(np.int64) - x.q.zero_point
    total = centred.sum(axis=reduced_axes(op, graph))
    count = averaged(op, graph, mean=mean)
    if count:
        even = np.rint(total / count) + y.q.zero_point
        return (np.clip(even, -128, 127).astype(np.int8).reshape(y.shape),)
    if reduce_attributes(op).rounding is Rounding.ONNX:
        once = single_scaling(op, graph, mean=mean).apply(total) + y.q.zero_point
        return (np.clip(once, -128, 127).astype(np.int8).reshape(y.shape),)
    multiplier, shift = scaling(op, graph, mean=mean)
    scaled = multiply_by_quantized_multiplier(total, multiplier, shift)
    scaled = wrap_int32(scaled + y.q.zero_point)
    info = np.iinfo(y.dtype.value)
    return (np.clip(scaled, info.min, info.max).astype(y.dtype.numpy).reshape(y.shape),)


def blocks(op: Op, graph: Graph) -> tuple[int, int, int, int, int]:
    """The input's shape as five sizes: kept, reduced, kept, reduced, kept elements.

    [2, 5, 5, 8] reduced over axes 1 and 2, for example, is (1, 1, 2, 25, 8). Raises
    UnsupportedError if the axes form more than two groups of neighbours.
    """
    x, axes = graph.input(op, 0), reduced_axes(op, graph)
    folded: list[tuple[bool, int]] = []
    for axis, size in enumerate(x.shape):
        if size == 1:
            continue
        reduced = axis in axes
        if folded and folded[-1][0] == reduced:
            folded[-1] = (reduced, folded[-1][1] * size)
        else:
            folded.append((reduced, size))
    if not folded or folded[-1][0]:
        folded.append((False, 1))
    sizes = [size for _, size in folded]
    if len(sizes) > 5 or (len(sizes) == 5 and folded[0][0]):
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: axes {list(axes)} of {list(x.shape)} fall into more than two "
            "groups; reduce them in two steps"
        )
    padded = [1] * (5 - len(sizes)) + sizes
    return (padded[0], padded[1], padded[2], padded[3], padded[4])


def reduction_axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Every axis that is kept."""
    reduced, kept = reduced_axes(op, graph), reduce_attributes(op).keep_dims
    through = [axis for axis in range(len(graph.input(op, 0).shape)) if axis not in reduced]
    return tuple(
        Axis(axis if kept else place, (Reach(axis),), lambda part: op.attributes)
        for place, axis in enumerate(through)
    )


def _may_wrap(op: Op, graph: Graph, *, mean: bool) -> bool:
    """Whether int32 may not hold a sum once it is shifted left."""
    x = graph.input(op, 0)
    count = math.prod(x.shape[axis] for axis in reduced_axes(op, graph))
    return count * reach(x) << max(scaling(op, graph, mean=mean)[1], 0) > INT32_MAX


def _ending(op: Op, graph: Graph, *, mean: bool) -> RequantiseSums:
    """What turns sums of the stored values into the output."""
    x, y = graph.input(op, 0), graph.output(op)
    count = math.prod(x.shape[axis] for axis in reduced_axes(op, graph))
    bias, offset = -x.q.zero_point * count, y.q.zero_point
    divisor = averaged(op, graph, mean=mean)
    if divisor:
        return RequantiseSums(Law.EVEN, count=divisor, bias=bias, offset=offset)
    if reduce_attributes(op).rounding is Rounding.ONNX:
        once = single_scaling(op, graph, mean=mean)
        code = once.shift - SHIFT_BIAS
        return RequantiseSums(
            Law.ONCE, (once.multiplier,), (code,), (once.low,), bias=bias, offset=offset
        )
    multiplier, shift = scaling(op, graph, mean=mean)
    code = shift_code(multiplier, shift, 255 * count)
    return RequantiseSums(multipliers=(multiplier,), codes=(code,), bias=bias, offset=offset)


def reduction_reductions(op: Op, graph: Graph, *, mean: bool) -> tuple[Reduction, ...]:
    """Every axis that is reduced; none where a left shift may wrap, which parts do not."""
    x, axes = graph.input(op, 0), reduced_axes(op, graph)
    if reduce_attributes(op).rounding is Rounding.TFLITE and _may_wrap(op, graph, mean=mean):
        return ()
    partial = Reduce(axes, reduce_attributes(op).keep_dims)
    return tuple(
        Reduction(
            x.shape[axis],
            (Reach(axis),),
            "partial_sum",
            partial,
            lambda: _ending(op, graph, mean=mean),
        )
        for axis in axes
    )


def read_reduction(node: TfliteNode) -> ReadOp:
    """The attributes of a TFLite operator with ReducerOptions and constant axes."""
    keep_dims = bool(node.has_options and node.options.keepDims)
    return ReadOp(Reduce(integers(node, 1), keep_dims), (0,))


def write_reduction(op: Op, graph: Graph, builtin: str) -> WrittenOp:
    """The TFLite operator `builtin`, the inverse of `read_reduction`."""
    attributes = reduce_attributes(op)
    return WrittenOp(
        builtin,
        "ReducerOptions",
        {"keepDims": attributes.keep_dims},
        (int32_constant("axes", attributes.axes),),
        version=2,
    )


def sample_reduction(rng: np.random.Generator, kind: str) -> Graph:
    """Random axes, also negative and repeated ones; sometimes a large map, as at a
    backbone's end.
    """
    rank = int(rng.integers(1, 5))
    shape = sample_shape(rng, rank)
    axes = [axis for axis in range(rank) if rng.random() < 0.5] or [rank - 1]
    if rng.random() < 0.4:
        shape = (1, *(int(d) for d in rng.integers(1, 20, 2)), int(rng.integers(1, 40)))
        axes = [2, 1]
    rank = len(shape)
    written = [axis - rank if rng.random() < 0.3 else axis for axis in axes]
    if rng.random() < 0.1:
        written.append(written[0])
    attributes = Reduce(tuple(written), bool(rng.random() < 0.5))
    op = Op(kind, "reduce", ("x",), ("y",), attributes)
    x = Tensor("x", shape, DType.INT8, sample_quantisation(rng))
    count = math.prod(shape[axis] for axis in axes)
    stretch = 2.0 ** rng.uniform(-2, 2) * (1 if kind == "mean" else np.sqrt(count))
    zero_point = int(rng.choice([x.q.zero_point, int(rng.integers(-128, 128))]))
    scale = x.q.scale if rng.random() < 0.3 else float(np.float32(x.q.scale * stretch))
    hollow = Tensor("y", (), DType.INT8, Quantisation((scale,), (zero_point,)))
    y_shape = infer_reduction(op, Graph.build("shape", [x, hollow], [op], ["x"], ["y"]))[0].shape
    y = Tensor("y", y_shape, DType.INT8, hollow.quantisation)
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])
