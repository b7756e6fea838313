"""Concat: inputs side by side along an axis.

TFLite CONCATENATION. Any element type; int8 operands must be quantised alike, as TFLite demands.
The front end rescales legacy uint8 operands (`frontends.tflite.legacy`).
Operands that lie whole in the output (nothing but 1 before the axis) are views of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy, image_pitch
from toolchain.ops.movement.joining import Parts, gather_copies, part_aliases, parts_along
from toolchain.ops.movement.kernels import copies_kernel
from toolchain.ops.readers.onnx import resolve_axes


@dataclass(frozen=True)
class Concat(kit.Attributes):
    """`axis`, along which the inputs are joined, may be negative."""

    axis: int


def _axis(op: kit.Operator[Concat]) -> int:
    return kit.resolve_axis(op.attributes.axis, len(op.x.shape))


def _parts(op: kit.Operator[Concat]) -> Parts:
    axis = _axis(op)
    return parts_along(op.y, axis, [x.shape[axis] for x in op.each])


def _infer(op: kit.Operator[Concat]) -> kit.TensorTypes:
    axis, inputs = _axis(op), op.each
    first = inputs[0]
    for x in inputs:
        if x.dtype is not first.dtype or len(x.shape) != len(first.shape):
            raise ValueError(f"{x} cannot stand beside {first}")
        if any(
            a != b for d, (a, b) in enumerate(zip(x.shape, first.shape, strict=True)) if d != axis
        ):
            raise ValueError(f"{x} and {first} differ in more than axis {axis}")
    length = sum(x.shape[axis] for x in inputs)
    return (kit.TensorType((*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype),)


def _reference(op: kit.Operator[Concat], inputs: kit.Inputs) -> kit.Arrays:
    return (np.concatenate(inputs, _axis(op)),)


def _copies(op: kit.Operator[Concat]) -> tuple[StridedCopy, ...]:
    return gather_copies(_parts(op), op.y.dtype.size_bytes)


def _select(op: kit.Operator[Concat], core: kit.Core) -> kit.Kernel:
    return copies_kernel(op, _copies(op))


def _aliases(op: kit.Operator[Concat]) -> tuple[kit.Alias, ...]:
    return part_aliases(_parts(op), op.y, op.each)


def _strided_views(op: kit.Operator[Concat]) -> tuple[kit.StridedView, ...]:
    """Views of blocks alone, which are written one by one to the image that they belong to."""
    if not op.is_block or len(set(op.inputs)) < len(op.inputs):
        return ()
    views = []
    for copy in _copies(op):
        view = op.input(copy.source)
        pitch = image_pitch(view, copy.run_bytes, copy.loops, source=False)
        if pitch:
            views.append(kit.StridedView(view.name, op.y.name, copy.target_offset, pitch))
    return tuple(views) if len(views) == len(op.inputs) else ()


def _axes(op: kit.Operator[Concat]) -> tuple[kit.Axis, ...]:
    """Every axis but the one along which the inputs are joined."""
    joined = _axis(op)
    return tuple(axis for axis in kit.elementwise_axes(op) if axis.axis != joined)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    if kit.read_activation(node) is not kit.Activation.NONE:
        raise node.unsupported("a fused activation", "apply it as an operator of its own")
    return kit.ReadOp(Concat(int(node.options.axis)), tuple(range(len(node.inputs))))


def _write(op: kit.Operator[Concat]) -> kit.WrittenOp:
    options = {"axis": op.attributes.axis, "fusedActivationFunction": kit.Activation.NONE}
    return kit.WrittenOp("CONCATENATION", "ConcatenationOptions", options, version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank, 600)
    if rng.random() < 0.3:
        shape = (1, *shape[1:])
    axis = int(rng.integers(rank))
    dtype, quantisation = kit.sample_type(rng)
    lengths = [int(n) for n in rng.integers(1, 7, int(rng.integers(1, 5)))]
    tensors = []
    for index, length in enumerate(lengths):
        part = (*shape[:axis], length, *shape[axis + 1 :])
        data = rng.integers(-128, 128, part).astype(dtype.numpy) if rng.random() < 0.2 else None
        constant = data if index else None
        tensors.append(kit.Tensor(f"x{index}", part, dtype, quantisation, constant))
    if rng.random() < 0.2:
        tensors.append(tensors[0])
    return kit.sample("concat", Concat(axis - rank if rng.random() < 0.5 else axis), *tensors)


def _read_onnx(node: kit.OnnxNode) -> None:
    """Every part takes the scale of the whole. Parts of other scales that nothing quantises
    afterwards stay real, as the file has them."""
    order = node.axes(*range(node.inputs))
    (axis,) = resolve_axes(node, (int(node.attribute("axis")),), len(order))
    first, *rest = (node.quantisation(i) for i in range(node.inputs))
    alike = all(q == first for q in rest)
    q = node.output_quantisation(first if alike else None)
    parts = [node.operand(i, order, quantisation=q) for i in range(node.inputs)]
    node.emit("concat", Concat(order.index(axis)), parts, q, order)


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="concat",
    attributes=Concat,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("CONCATENATION",), _read, _write),
    aliases=_aliases,
    strided_views=_strided_views,
    axes=_axes,
    types=frozenset(kit.DType),
    onnx=kit.OnnxBinding(("Concat",), _read_onnx, plain=_read_onnx),
    limits="any type; operands quantised alike, but for legacy uint8, which is rescaled",
)
