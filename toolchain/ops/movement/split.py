"""Split: the parts of a tensor along an axis, one output each.

TFLite SPLIT (equal parts) and SPLIT_V (any sizes). Any element type. Outputs that lie whole in the
input (nothing but 1 before the axis) are views of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy
from toolchain.ops.movement.joining import Parts, part_aliases, parts_along, scatter_copies
from toolchain.ops.movement.kernels import copies_kernel
from toolchain.ops.readers.onnx import resolve_axes


@dataclass(frozen=True)
class Split(kit.Attributes):
    """`lengths`: how much of the axis each output gets."""

    axis: int
    lengths: tuple[int, ...]


def _parts(op: kit.Operator[Split]) -> Parts:
    x = op.x
    axis = kit.resolve_axis(op.attributes.axis, len(x.shape))
    return parts_along(x, axis, op.attributes.lengths)


def _infer(op: kit.Operator[Split]) -> kit.TensorTypes:
    x, attributes = op.x, op.attributes
    axis = kit.resolve_axis(attributes.axis, len(x.shape))
    if len(attributes.lengths) != len(op.outputs) or min(attributes.lengths) < 0:
        raise ValueError(f"lengths {list(attributes.lengths)} for {len(op.outputs)} outputs")
    if sum(attributes.lengths) != x.shape[axis]:
        raise ValueError(f"lengths {list(attributes.lengths)} do not add up to {x.shape[axis]}")
    return tuple(
        kit.TensorType((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)
        for length in attributes.lengths
    )


def _reference(op: kit.Operator[Split], inputs: kit.Inputs) -> kit.Arrays:
    ends = np.cumsum(op.attributes.lengths)[:-1]
    return tuple(np.split(inputs[0], ends, axis=op.attributes.axis))


def _copies(op: kit.Operator[Split]) -> tuple[StridedCopy, ...]:
    return scatter_copies(_parts(op), op.x.dtype.size_bytes)


def _select(op: kit.Operator[Split], core: kit.Core) -> kit.Kernel:
    return copies_kernel(op, _copies(op))


def _aliases(op: kit.Operator[Split]) -> tuple[kit.Alias, ...]:
    return part_aliases(_parts(op), op.x, op.outputs)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    """SPLIT has inputs (axis, data); SPLIT_V (data, sizes, axis)."""
    data, axis_input = (0, 2) if len(node.inputs) == 3 else (1, 0)
    x = node.inputs[data]
    assert x is not None
    axis = node.integers(axis_input)[0]
    resolved = axis % max(len(x.shape), 1)
    whole = x.shape[resolved]
    if node.builtin == "SPLIT_V":
        stated = node.integers(1)
        lengths = tuple(whole - sum(stated) - 1 if n == -1 else n for n in stated)
    else:
        lengths = (whole // len(node.outputs),) * len(node.outputs)
    return kit.ReadOp(Split(axis, lengths), (data,))


def _write(op: kit.Operator[Split]) -> kit.WrittenOp:
    attributes = op.attributes
    axis = kit.int32_constant("axis", np.array(attributes.axis))
    options = {"numSplits": len(op.outputs)}
    if len(set(attributes.lengths)) == 1:
        return kit.WrittenOp("SPLIT", "SplitOptions", options, (axis,), version=2, order=(1, 0))
    lengths = kit.int32_constant("lengths", attributes.lengths)
    return kit.WrittenOp("SPLIT_V", "SplitVOptions", options, (lengths, axis), version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank, 600)
    if rng.random() < 0.3:
        shape = (1, *shape[1:])
    axis = int(rng.integers(rank))
    dtype, quantisation = kit.sample_type(rng)
    lengths = tuple(int(n) for n in rng.integers(1, 6, int(rng.integers(1, 5))))
    if rng.random() < 0.4:
        lengths = (lengths[0],) * len(lengths)
    x = kit.Tensor("x", (*shape[:axis], sum(lengths), *shape[axis + 1 :]), dtype, quantisation)
    names = [f"y{i}" for i in range(len(lengths))]
    written = axis - rank if rng.random() < 0.5 else axis
    return kit.sample("split", Split(written, lengths), x, outputs=names)


def _read_onnx(node: kit.OnnxNode) -> None:
    order = node.axes(0)
    (axis,) = resolve_axes(node, (int(node.attribute("axis", 0)),), len(order))
    lengths = tuple(node.output_shape(i)[axis] for i in range(node.outputs))
    if sum(lengths) != node.shape(0)[axis]:
        raise ValueError(f"parts of {lengths} of {node.shape(0)[axis]}")
    attributes = Split(order.index(axis), lengths)
    node.emit("split", attributes, [node.operand(0, order)], node.quantisation(0), order)


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="split",
    attributes=Split,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("SPLIT", "SPLIT_V"), _read, _write),
    aliases=_aliases,
    types=frozenset(kit.DType),
    onnx=kit.OnnxBinding(("Split",), _read_onnx),
    limits="any type; axis and sizes are constant",
)
