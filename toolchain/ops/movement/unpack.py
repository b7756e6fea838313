"""Unpack: one output for each index of an axis, without that axis.

TFLite UNPACK. Any element type. Outputs that lie whole in the input are views of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy
from toolchain.ops.movement.joining import Parts, part_aliases, parts_along, scatter_copies
from toolchain.ops.movement.kernels import copies_kernel


@dataclass(frozen=True)
class Unpack(kit.Attributes):
    """`axis`, whose indices become outputs, may be negative."""

    axis: int


def _axis(op: kit.Operator[Unpack]) -> int:
    return kit.resolve_axis(op.attributes.axis, len(op.x.shape))


def _parts(op: kit.Operator[Unpack]) -> Parts:
    return parts_along(op.x, _axis(op), [1] * len(op.outputs))


def _infer(op: kit.Operator[Unpack]) -> kit.TensorTypes:
    x, axis = op.x, _axis(op)
    if x.shape[axis] != len(op.outputs):
        raise ValueError(f"axis {axis} of {x} does not give {len(op.outputs)} outputs")
    return (kit.TensorType((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype),) * len(op.outputs)


def _reference(op: kit.Operator[Unpack], inputs: kit.Inputs) -> kit.Arrays:
    axis = _axis(op)
    return tuple(np.take(inputs[0], index, axis) for index in range(len(op.outputs)))


def _copies(op: kit.Operator[Unpack]) -> tuple[StridedCopy, ...]:
    return scatter_copies(_parts(op), op.x.dtype.size_bytes)


def _select(op: kit.Operator[Unpack], core: kit.Core) -> kit.Kernel:
    return copies_kernel(op, _copies(op))


def _aliases(op: kit.Operator[Unpack]) -> tuple[kit.Alias, ...]:
    return part_aliases(_parts(op), op.x, op.outputs)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    if node.options.num != len(node.outputs):
        raise node.unsupported(
            f"its options speak of {node.options.num} outputs, and it has {len(node.outputs)}"
        )
    return kit.ReadOp(Unpack(int(node.options.axis)), (0,))


def _write(op: kit.Operator[Unpack]) -> kit.WrittenOp:
    options = {"axis": op.attributes.axis, "num": len(op.outputs)}
    return kit.WrittenOp("UNPACK", "UnpackOptions", options, version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(2, 5))
    shape = kit.sample_shape(rng, rank, 400)
    axis = int(rng.integers(rank))
    x = kit.Tensor("x", shape, *kit.sample_type(rng, (kit.DType.INT32, kit.DType.FLOAT32)))
    written = axis - rank if rng.random() < 0.5 else axis
    outputs = [f"y{i}" for i in range(shape[axis])]
    return kit.sample("unpack", Unpack(written), x, outputs=outputs)


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="unpack",
    attributes=Unpack,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("UNPACK",), _read, _write),
    aliases=_aliases,
    types=frozenset(kit.DType),
    limits="any type",
)
