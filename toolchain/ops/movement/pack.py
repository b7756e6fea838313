"""Pack: inputs of one shape side by side along a new axis.

TFLite PACK. Any element type. Operands that lie whole in the output are views of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy
from toolchain.ops.movement.joining import Parts, gather_copies, part_aliases, parts_along
from toolchain.ops.movement.kernels import copies_kernel


@dataclass(frozen=True)
class Pack(kit.Attributes):
    """`axis` of the output that counts the inputs."""

    axis: int


def _axis(op: kit.Operator[Pack]) -> int:
    return kit.resolve_axis(op.attributes.axis, len(op.x.shape) + 1)


def _parts(op: kit.Operator[Pack]) -> Parts:
    return parts_along(op.y, _axis(op), [1] * len(op.inputs))


def _infer(op: kit.Operator[Pack]) -> kit.TensorTypes:
    axis, first = _axis(op), op.x
    for x in op.each:
        if (x.dtype, x.shape) != (first.dtype, first.shape):
            raise ValueError(f"{x} cannot be packed with {first}")
    return (
        kit.TensorType((*first.shape[:axis], len(op.inputs), *first.shape[axis:]), first.dtype),
    )


def _reference(op: kit.Operator[Pack], inputs: kit.Inputs) -> kit.Arrays:
    return (np.stack(inputs, _axis(op)),)


def _copies(op: kit.Operator[Pack]) -> tuple[StridedCopy, ...]:
    return gather_copies(_parts(op), op.y.dtype.size_bytes)


def _axes(op: kit.Operator[Pack]) -> tuple[kit.Axis, ...]:
    """Every axis but the new one."""
    new, rank = _axis(op), len(op.y.shape)

    def along(axis: int) -> kit.Axis:
        reach = kit.Reach(axis - (axis > new))
        return kit.Axis(axis, (reach,) * len(op.inputs))

    return tuple(along(axis) for axis in range(rank) if axis != new)


def _select(op: kit.Operator[Pack], core: kit.Core) -> kit.Kernel:
    return copies_kernel(op, _copies(op))


def _aliases(op: kit.Operator[Pack]) -> tuple[kit.Alias, ...]:
    return part_aliases(_parts(op), op.y, op.each)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    if node.options.valuesCount != len(node.inputs):
        raise node.unsupported(
            f"its options speak of {node.options.valuesCount} inputs, and it has {len(node.inputs)}"
        )
    return kit.ReadOp(Pack(int(node.options.axis)), tuple(range(len(node.inputs))))


def _write(op: kit.Operator[Pack]) -> kit.WrittenOp:
    options = {"axis": op.attributes.axis, "valuesCount": len(op.inputs)}
    return kit.WrittenOp("PACK", "PackOptions", options, version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 4))
    shape = kit.sample_shape(rng, rank, 400)
    axis = int(rng.integers(rank + 1))
    dtype, quantisation = kit.sample_type(rng)
    inputs = [
        kit.Tensor(f"x{i}", shape, dtype, quantisation) for i in range(int(rng.integers(1, 5)))
    ]
    return kit.sample("pack", Pack(axis - rank - 1 if rng.random() < 0.5 else axis), *inputs)


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="pack",
    attributes=Pack,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("PACK",), _read, _write),
    aliases=_aliases,
    axes=_axes,
    types=frozenset(kit.DType),
    limits="any type; operands quantised alike",
)
