"""Parts of the reductions: attributes, shape rule, axes; and the int8 arithmetic of mean and sum.

`reference_ops::QuantizedMeanOrSum`: the sum of (x - zero point) over the axes is scaled by one
multiplier. A mean's multiplier also contains 1 / count, divided as integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.onnx_rounding import onnx_fit
from toolchain.ops.arithmetic.single_rounding import SingleRounding
from toolchain.ops.elementwise.common import reach
from toolchain.ops.reduction.requantise_sums import Law, RequantiseSums

_TYPES = (
    kit.DType.INT8,
    kit.DType.INT16,
    kit.DType.INT32,
    kit.DType.INT64,
    kit.DType.FLOAT32,
    kit.DType.BOOL,
)


@dataclass(frozen=True)
class Reduce(kit.Attributes):
    """`axes` may be negative or repeated. With `keep_dims` the reduced dimensions stay, as 1."""

    axes: tuple[int, ...]
    keep_dims: bool = False
    rounding: kit.Rounding = kit.Rounding.TFLITE


def reduced_axes(op: kit.Operator[Reduce]) -> tuple[int, ...]:
    """The axes as ascending indices. Raises ValueError if one is out of range."""
    rank = len(op.x.shape)
    return tuple(sorted({kit.resolve_axis(axis, rank) for axis in op.attributes.axes}))


def infer_reduction(op: kit.Operator[Reduce]) -> kit.TensorTypes:
    """Shape rule. Raises ValueError for an element type or an axis that there is not."""
    x, axes = op.x, reduced_axes(op)
    if x.dtype not in _TYPES:
        known = ", ".join(dtype.value for dtype in _TYPES)
        raise ValueError(f"reduction needs data of {known}, not {x.dtype.value}")
    if op.attributes.keep_dims:
        shape = tuple(1 if axis in axes else d for axis, d in enumerate(x.shape))
    else:
        shape = tuple(d for axis, d in enumerate(x.shape) if axis not in axes)
    return (kit.TensorType(shape, x.dtype),)


def scaling(op: kit.Operator[Reduce], *, mean: bool) -> tuple[int, int]:
    """Multiplier (Q0.31) and left shift that take the sum of (x - zero point) to steps of the
    output.
    """
    x, y = op.x, op.y
    count = math.prod(x.shape[axis] for axis in reduced_axes(op))
    multiplier, shift = kit.quantize_multiplier(x.q.scale / y.q.scale)
    if not mean:
        return multiplier, shift
    spread = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << spread) // count, shift - spread


def single_scaling(op: kit.Operator[Reduce], *, mean: bool) -> SingleRounding:
    """The scaling with ONNX Runtime's rounding: once, in float32."""
    x, y = op.x, op.y
    count = math.prod(x.shape[axis] for axis in reduced_axes(op))
    divisor = np.float32(y.q.scale) * np.float32(count if mean else 1)
    factor = float(np.float32(x.q.scale) / divisor)
    zero_point = y.q.zero_point
    return onnx_fit(factor, 255 * count, -128 - zero_point, 127 - zero_point)


def averaged(op: kit.Operator[Reduce], *, mean: bool) -> int:
    """The count that ONNX Runtime divides a mean by, rounding halves to even.

    0 if the operator is no such mean, or if input and output have different scales.
    """
    x, y = op.x, op.y
    onnx = op.attributes.rounding is kit.Rounding.ONNX
    if not mean or not onnx or x.q.scale != y.q.scale:
        return 0
    return math.prod(x.shape[axis] for axis in reduced_axes(op))


def reduction_reference(op: kit.Operator[Reduce], inputs: kit.Inputs, *, mean: bool) -> kit.Arrays:
    """The int8 or int16 reference of mean and sum."""
    x, y = op.x, op.y
    centred = inputs[0].astype(np.int64) - x.q.zero_point
    total = centred.sum(axis=reduced_axes(op))
    count = averaged(op, mean=mean)
    if count:
        even = np.rint(total / count) + y.q.zero_point
        return (np.clip(even, -128, 127).astype(np.int8).reshape(y.shape),)
    if op.attributes.rounding is kit.Rounding.ONNX:
        once = single_scaling(op, mean=mean).apply(total) + y.q.zero_point
        return (np.clip(once, -128, 127).astype(np.int8).reshape(y.shape),)
    multiplier, shift = scaling(op, mean=mean)
    scaled = kit.multiply_by_quantized_multiplier(total, multiplier, shift)
    scaled = kit.wrap_int32(scaled + y.q.zero_point)
    info = np.iinfo(y.dtype.value)
    return (np.clip(scaled, info.min, info.max).astype(y.dtype.numpy).reshape(y.shape),)


def blocks(op: kit.Operator[Reduce]) -> tuple[int, int, int, int, int]:
    """The input's shape as five sizes: kept, reduced, kept, reduced, kept elements.

    [2, 5, 5, 8] reduced over axes 1 and 2, for example, is (1, 1, 2, 25, 8). Raises
    UnsupportedError if the axes form more than two groups of neighbours.
    """
    x, axes = op.x, reduced_axes(op)
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
        raise op.refused(
            f"axes {list(axes)} of {list(x.shape)} fall into more than two "
            "groups; reduce them in two steps"
        )
    padded = [1] * (5 - len(sizes)) + sizes
    return (padded[0], padded[1], padded[2], padded[3], padded[4])


def reduction_axes(op: kit.Operator[Reduce]) -> tuple[kit.Axis, ...]:
    """Every axis that is kept."""
    reduced, kept = reduced_axes(op), op.attributes.keep_dims
    through = [axis for axis in range(len(op.x.shape)) if axis not in reduced]
    return tuple(
        kit.Axis(axis if kept else place, (kit.Reach(axis),)) for place, axis in enumerate(through)
    )


def _may_wrap(op: kit.Operator[Reduce], *, mean: bool) -> bool:
    """Whether int32 may not hold a sum once it is shifted left."""
    x = op.x
    count = math.prod(x.shape[axis] for axis in reduced_axes(op))
    return count * reach(x) << max(scaling(op, mean=mean)[1], 0) > kit.INT32_MAX


def _ending(op: kit.Operator[Reduce], *, mean: bool) -> RequantiseSums:
    """The attributes of the operator that turns sums of stored values into the output."""
    x, y = op.x, op.y
    count = math.prod(x.shape[axis] for axis in reduced_axes(op))
    bias, offset = -x.q.zero_point * count, y.q.zero_point
    divisor = averaged(op, mean=mean)
    if divisor:
        return RequantiseSums(Law.EVEN, count=divisor, bias=bias, offset=offset)
    if op.attributes.rounding is kit.Rounding.ONNX:
        once = single_scaling(op, mean=mean)
        code = once.shift - packing.SHIFT_BIAS
        return RequantiseSums(
            Law.ONCE, (once.multiplier,), (code,), (once.low,), bias=bias, offset=offset
        )
    multiplier, shift = scaling(op, mean=mean)
    code = packing.shift_code(multiplier, shift, 255 * count)
    return RequantiseSums(multipliers=(multiplier,), codes=(code,), bias=bias, offset=offset)


def reduction_reductions(op: kit.Operator[Reduce], *, mean: bool) -> tuple[kit.Reduction, ...]:
    """Every axis that is reduced; none where a left shift may wrap, which parts do not."""
    x, axes = op.x, reduced_axes(op)
    if op.attributes.rounding is kit.Rounding.TFLITE and _may_wrap(op, mean=mean):
        return ()
    partial = Reduce(axes, op.attributes.keep_dims)
    return tuple(
        kit.Reduction(
            x.shape[axis],
            (kit.Reach(axis),),
            "partial_sum",
            partial,
            lambda: _ending(op, mean=mean),
        )
        for axis in axes
    )


def read_reduction(node: kit.TfliteNode) -> kit.ReadOp:
    """The attributes of a TFLite operator with ReducerOptions and constant axes."""
    keep_dims = bool(node.has_options and node.options.keepDims)
    return kit.ReadOp(Reduce(node.integers(1), keep_dims), (0,))


def write_reduction(op: kit.Operator[Reduce], builtin: str) -> kit.WrittenOp:
    """The TFLite operator `builtin`, the inverse of `read_reduction`."""
    attributes = op.attributes
    return kit.WrittenOp(
        builtin,
        "ReducerOptions",
        {"keepDims": attributes.keep_dims},
        (kit.int32_constant("axes", attributes.axes),),
        version=2,
    )


def sample_reduction(rng: np.random.Generator, kind: str) -> kit.Graph:
    """Random axes, also negative and repeated ones; sometimes a large map, as at a
    backbone's end.
    """
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank)
    axes = [axis for axis in range(rank) if rng.random() < 0.5] or [rank - 1]
    if rng.random() < 0.4:
        shape = (1, *(int(d) for d in rng.integers(1, 20, 2)), int(rng.integers(1, 40)))
        axes = [2, 1]
    rank = len(shape)
    written = [axis - rank if rng.random() < 0.3 else axis for axis in axes]
    if rng.random() < 0.1:
        written.append(written[0])
    attributes = Reduce(tuple(written), bool(rng.random() < 0.5))
    x = kit.Tensor("x", shape, kit.DType.INT8, kit.sample_quantisation(rng))
    count = math.prod(shape[axis] for axis in axes)
    stretch = 2.0 ** rng.uniform(-2, 2) * (1 if kind == "mean" else np.sqrt(count))
    zero_point = int(rng.choice([x.q.zero_point, int(rng.integers(-128, 128))]))
    scale = x.q.scale if rng.random() < 0.3 else float(np.float32(x.q.scale * stretch))
    q = kit.Quantisation((scale,), (zero_point,))
    return kit.sample(kind, attributes, x, q=q, name="reduce")
