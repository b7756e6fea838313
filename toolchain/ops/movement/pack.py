"""Pack: inputs of one shape side by side along a new axis.

TFLite PACK. Any element type. Operands that lie whole in the output are views of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.movement.copies import (
    StridedCopy,
    resolve_axis,
    sample_shape,
    sample_type,
)
from toolchain.ops.movement.joining import Parts, gather_copies, parts_along
from toolchain.ops.movement.kernels import copies_kernel
from toolchain.ops.spec import (
    ALIKE,
    Alias,
    Array,
    Axis,
    Reach,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


@dataclass(frozen=True)
class Pack(Attributes):
    """`axis` of the output that counts the inputs."""

    axis: int


def _axis(op: Op, graph: Graph) -> int:
    assert isinstance(op.attributes, Pack)
    return resolve_axis(op.attributes.axis, len(graph.input(op, 0).shape) + 1)


def _parts(op: Op, graph: Graph) -> Parts:
    return parts_along(graph.output(op), _axis(op, graph), [1] * len(op.inputs))


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    axis, first = _axis(op, graph), graph.input(op, 0)
    for name in op.inputs:
        x = graph.tensors[name]
        if (x.dtype, x.shape) != (first.dtype, first.shape):
            raise ValueError(f"{x} cannot be packed with {first}")
    return (TensorType((*first.shape[:axis], len(op.inputs), *first.shape[axis:]), first.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (np.stack(inputs, _axis(op, graph)),)


def _copies(op: Op, graph: Graph) -> tuple[StridedCopy, ...]:
    return gather_copies(_parts(op, graph), graph.output(op).dtype.size_bytes)


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Every axis but the new one."""
    new, rank = _axis(op, graph), len(graph.output(op).shape)

    def along(axis: int) -> Axis:
        reach = Reach(axis - (axis > new))
        return Axis(axis, (reach,) * len(op.inputs), lambda part: op.attributes)

    return tuple(along(axis) for axis in range(rank) if axis != new)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return copies_kernel(op, graph, _copies(op, graph))


def _aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    parts, y = _parts(op, graph), graph.output(op)
    if not parts.contiguous:
        return ()
    unit = parts.inner * y.dtype.size_bytes
    return tuple(Alias(name, y.name, index * unit) for index, name in enumerate(op.inputs))


def _read(node: TfliteNode) -> ReadOp:
    if node.options.valuesCount != len(node.inputs):
        raise node.unsupported(
            f"its options speak of {node.options.valuesCount} inputs, and it has {len(node.inputs)}"
        )
    return ReadOp(Pack(int(node.options.axis)), tuple(range(len(node.inputs))))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, Pack)
    options = {"axis": op.attributes.axis, "valuesCount": len(op.inputs)}
    return WrittenOp("PACK", "PackOptions", options, version=2)


def _sample(rng: np.random.Generator) -> Graph:
    rank = int(rng.integers(1, 4))
    shape = sample_shape(rng, rank, 400)
    axis = int(rng.integers(rank + 1))
    dtype, quantisation = sample_type(rng)
    inputs = [Tensor(f"x{i}", shape, dtype, quantisation) for i in range(int(rng.integers(1, 5)))]
    names = [x.name for x in inputs]
    y = Tensor("y", (*shape[:axis], len(inputs), *shape[axis:]), dtype, quantisation)
    written = axis - rank - 1 if rng.random() < 0.5 else axis
    op = Op("pack", "pack", tuple(names), ("y",), Pack(written))
    return Graph.build("sample", [*inputs, y], [op], names, ["y"])


SPEC = OldForm(
    quantised=ALIKE,
    kind="pack",
    attributes=Pack,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("PACK",), _read, _write),
    aliases=_aliases,
    axes=_axes,
    types=frozenset(DType),
    limits="any type; operands quantised alike",
)
