"""Slice: a regular grid of elements of the input.

TFLite SLICE and STRIDED_SLICE, all masks resolved when reading, and REVERSE_V2. Any element type. A
slice that is one run of bytes is a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy, image_pitch, row_major, strided_copy
from toolchain.ops.movement.gather import Gather
from toolchain.ops.movement.kernels import copies_kernel
from toolchain.ops.movement.slicing import selected
from toolchain.ops.readers.onnx import resolve_axes

TO_THE_END = -1
"""As a size (and in the shape): all elements to the end, as in TFLite's SLICE."""


@dataclass(frozen=True)
class Slice(kit.Attributes):
    """`sizes[i]` elements of input axis `i`, from `begin[i]` in steps of `strides[i]`.

    `shape` is the output's: the sizes, with or without dimensions of 1.
    """

    begin: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    shape: tuple[int, ...]


def _attributes(op: kit.Operator[Slice]) -> Slice:
    """All sizes as numbers."""
    attributes, x = op.attributes, op.x
    if not len(attributes.begin) == len(attributes.sizes) == len(x.shape):
        raise ValueError(f"a slice of {len(attributes.begin)} dimensions of {x}")
    if TO_THE_END not in attributes.sizes:
        return attributes
    axes = zip(x.shape, attributes.begin, attributes.sizes, attributes.strides, strict=True)
    sizes = tuple(
        -((begin - size) // stride) if count == TO_THE_END else count
        for size, begin, count, stride in axes
    )
    return Slice(attributes.begin, sizes, attributes.strides, sizes)


def _infer(op: kit.Operator[Slice]) -> kit.TensorTypes:
    x, attributes = op.x, _attributes(op)
    axes = zip(x.shape, attributes.begin, attributes.sizes, attributes.strides, strict=True)
    for size, begin, count, stride in axes:
        if count < 1:
            raise ValueError(f"nothing is left of a dimension of {size}")
        if not (0 <= begin < size and 0 <= begin + (count - 1) * stride < size):
            raise ValueError(f"{count} from {begin} by {stride} leaves a dimension of {size}")
    if [d for d in attributes.shape if d != 1] != [d for d in attributes.sizes if d != 1]:
        raise ValueError(f"{list(attributes.sizes)} does not make {list(attributes.shape)}")
    return (kit.TensorType(attributes.shape, x.dtype),)


def _reference(op: kit.Operator[Slice], inputs: kit.Inputs) -> kit.Arrays:
    attributes, data = _attributes(op), inputs[0]
    axes = zip(attributes.begin, attributes.sizes, attributes.strides, strict=True)
    for axis, (begin, count, stride) in enumerate(axes):
        data = np.take(data, begin + stride * np.arange(count), axis)
    return (data.reshape(attributes.shape),)


def _copy(op: kit.Operator[Slice]) -> StridedCopy:
    x, attributes = op.x, _attributes(op)
    steps = row_major(x.shape)
    start = sum(first * step for first, step in zip(attributes.begin, steps, strict=True))
    reads = [stride * step for stride, step in zip(attributes.strides, steps, strict=True)]
    (copy,) = strided_copy(
        attributes.sizes,
        reads,
        row_major(attributes.sizes),
        x.dtype.size_bytes,
        source_offset=start,
    )
    return copy


def _select(op: kit.Operator[Slice], core: kit.Core) -> kit.Kernel:
    return copies_kernel(op, [_copy(op)])


def _aliases(op: kit.Operator[Slice]) -> tuple[kit.Alias, ...]:
    copy = _copy(op)
    return () if copy.loops else (kit.Alias(op.y.name, op.x.name, copy.source_offset),)


def _strided_views(op: kit.Operator[Slice]) -> tuple[kit.StridedView, ...]:
    """Views of blocks alone: elsewhere a copy lets the rest of the input die."""
    copy, view = _copy(op), op.y
    pitch = image_pitch(view, copy.run_bytes, copy.loops, source=True) if op.is_block else 0
    return (kit.StridedView(view.name, op.x.name, copy.source_offset, pitch),) if pitch else ()


def _axes(op: kit.Operator[Slice]) -> tuple[kit.Axis, ...]:
    """Every axis, where none is lost and all go forwards: a block takes all of what it is given."""
    attributes = _attributes(op)
    if attributes.shape != attributes.sizes or min(attributes.strides) < 1:
        return ()

    def along(axis: int) -> kit.Axis:
        begin = tuple(0 if i == axis else first for i, first in enumerate(attributes.begin))
        sizes = tuple(TO_THE_END if i == axis else d for i, d in enumerate(attributes.sizes))
        block = Slice(begin, sizes, attributes.strides, sizes)
        reach = kit.Reach(axis, attributes.strides[axis], 1, -attributes.begin[axis])
        return kit.Axis(axis, (reach,), lambda part: block)

    return tuple(along(axis) for axis in range(len(attributes.begin)))


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    x = node.inputs[0]
    assert x is not None
    if node.builtin == "REVERSE_V2":
        reversed_axes = {kit.resolve_axis(axis, len(x.shape)) for axis in node.integers(1)}
        ends = tuple(d - 1 if axis in reversed_axes else 0 for axis, d in enumerate(x.shape))
        steps = tuple(-1 if axis in reversed_axes else 1 for axis in range(len(x.shape)))
        return kit.ReadOp(Slice(ends, x.shape, steps, x.shape), (0,))
    wanted = 3 if node.builtin == "SLICE" else 4
    if len(node.inputs) != wanted:
        raise node.unsupported(f"{len(node.inputs)} inputs instead of {wanted}")
    if node.builtin == "SLICE":
        begin, sizes = node.integers(1), list(node.integers(2))
        for axis, (first, size) in enumerate(zip(begin, sizes, strict=True)):
            if size == -1:
                sizes[axis] = x.shape[axis] - first
        return kit.ReadOp(Slice(begin, tuple(sizes), (1,) * len(begin), tuple(sizes)), (0,))
    limits = [node.integers(index) for index in (1, 2, 3)]
    try:
        taken = selected(node.options, x.shape, limits)
    except ValueError as error:
        raise node.unsupported(str(error)) from error
    return kit.ReadOp(Slice(taken.begin, taken.sizes, taken.strides, taken.shape), (0,))


def _write(op: kit.Operator[Slice]) -> kit.WrittenOp:
    """As SLICE where that can say it, else as STRIDED_SLICE, lost dimensions of 1 shrunk."""
    attributes = _attributes(op)
    if set(attributes.strides) <= {1} and attributes.shape == attributes.sizes:
        limits = (("begin", attributes.begin), ("size", attributes.sizes))
        return kit.WrittenOp(
            "SLICE",
            "SliceOptions",
            extra_inputs=tuple(kit.int32_constant(name, value) for name, value in limits),
            version=2,
        )
    axes = list(zip(attributes.begin, attributes.sizes, attributes.strides, strict=True))
    end = [begin + count * stride for begin, count, stride in axes]
    kept = list(attributes.shape)
    shrink = 0
    for axis, count in enumerate(attributes.sizes):
        if kept and kept[0] == count:
            kept.pop(0)
        else:
            shrink |= 1 << axis
    if kept:
        raise ValueError(f"STRIDED_SLICE cannot make {attributes.shape} of {attributes.sizes}")
    options = {
        "beginMask": 0,
        "endMask": sum(1 << axis for axis, last in enumerate(end) if last < 0),
        "ellipsisMask": 0,
        "newAxisMask": 0,
        "shrinkAxisMask": shrink,
    }
    values = (("begin", attributes.begin), ("end", end), ("strides", attributes.strides))
    constants = tuple(kit.int32_constant(name, value) for name, value in values)
    return kit.WrittenOp("STRIDED_SLICE", "StridedSliceOptions", options, constants, version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank)
    plain = bool(rng.random() < 0.3)
    begin, sizes, strides = [], [], []
    for size in shape:
        first, last = (int(i) for i in rng.integers(0, size, 2))
        if rng.random() < 0.3:
            first, last = 0, size - 1
        if plain:
            first, last = min(first, last), max(first, last)
        stride = 1 if plain else int(rng.integers(1, 4)) * (1 if first <= last else -1)
        begin.append(first)
        sizes.append((last - first) // stride + 1)
        strides.append(stride if sizes[-1] > 1 else abs(stride))
    shrunk = [not plain and count == 1 and rng.random() < 0.5 for count in sizes]
    out = tuple(count for count, gone in zip(sizes, shrunk, strict=True) if not gone)
    dtype, quantisation = kit.sample_type(rng)
    x = kit.Tensor("x", shape, dtype, quantisation)
    return kit.sample("slice", Slice(tuple(begin), tuple(sizes), tuple(strides), out), x)


def _read_onnx(node: kit.OnnxNode) -> None:
    """Slice, and Gather: of constant evenly spaced indices a slice as well."""
    rank = len(node.shape(0))
    begin, strides = [0] * rank, [1] * rank
    sizes = list(node.shape(0))
    if node.operator == "Gather":
        (axis,) = resolve_axes(node, (int(node.attribute("axis", 0)),), rank)
        if node.is_constant(0) or not node.is_constant(1):
            _emit_gather(node, axis)
            return
        indices = [i + sizes[axis] if i < 0 else i for i in node.integers(1)]
        if not all(0 <= i < sizes[axis] for i in indices):
            raise ValueError(f"indices {indices} of {sizes[axis]}")
        steps = set(np.diff(indices).tolist()) or {1}
        if len(steps) != 1 or 0 in steps or len(node.shape(1)) > 1:
            _emit_gather(node, axis, indices)
            return
        begin[axis], sizes[axis], strides[axis] = indices[0], len(indices), steps.pop()
    else:
        for axis, first, count, step in _slices(node, rank):
            begin[axis], sizes[axis], strides[axis] = first, count, step
    _emit_slice(node, begin, sizes, strides)


def _emit_gather(node: kit.OnnxNode, axis: int, indices: Sequence[int] | None = None) -> None:
    """Both operands, and the result, lie as ONNX says. `indices`: where they are constant."""
    data = node.operand(0, tuple(range(len(node.shape(0)))))
    if indices is None:
        picks = node.operand(1, tuple(range(len(node.shape(1)))))
    else:
        constant = np.array(indices, np.int32).reshape(node.shape(1))
        picks = node.add_constant("indices", constant, None)
    axes = tuple(range(len(node.output_shape())))
    node.emit("gather", Gather(axis), [data, picks], node.quantisation(0), axes)


def _emit_slice(node: kit.OnnxNode, begin: list[int], sizes: list[int], strides: list[int]) -> None:
    order, kept = node.axes(0), node.output_shape()
    if [d for d in sizes if d != 1] != [d for d in kept if d != 1]:
        raise ValueError(f"{sizes} is left, {list(kept)} was expected")
    if len(kept) == len(sizes):
        axes = order
    else:  # a gathered dimension is gone: the result lies as ONNX says
        order = tuple(range(len(sizes)))
        axes = tuple(range(len(kept)))
    stored = tuple(kept[axis] for axis in axes)
    attributes = Slice(
        tuple(begin[axis] for axis in order),
        tuple(sizes[axis] for axis in order),
        tuple(strides[axis] for axis in order),
        stored,
    )
    node.emit("slice", attributes, [node.operand(0, order)], node.quantisation(0), axes)


def _slices(node: kit.OnnxNode, rank: int) -> list[tuple[int, int, int, int]]:
    """For each sliced axis: the axis, the first index, how many, the step."""
    starts, ends = node.integers(1), node.integers(2)
    axes = node.integers(3) if node.has(3) else tuple(range(len(starts)))
    steps = node.integers(4) if node.has(4) else (1,) * len(starts)
    slices = []
    numbered = resolve_axes(node, axes, rank)
    for axis, start, end, step in zip(numbered, starts, ends, steps, strict=True):
        indices = range(node.shape(0)[axis])[slice(start, end, step)]
        if not indices:
            raise node.unsupported(f"nothing is left of dimension {axis}")
        slices.append((axis, indices[0], len(indices), step))
    return slices


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="slice",
    attributes=Slice,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("SLICE", "STRIDED_SLICE", "REVERSE_V2"), _read, _write),
    aliases=_aliases,
    strided_views=_strided_views,
    axes=_axes,
    types=frozenset(kit.DType),
    onnx=kit.OnnxBinding(("Slice", "Gather"), _read_onnx, plain=_read_onnx),
    limits="any type; limits are constant; at least one element is taken",
)
