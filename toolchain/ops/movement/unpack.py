"""Unpack: one output for each index of an axis, without that axis.

TFLite UNPACK. Any element type. Outputs that lie whole in the input are views of it.
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
from toolchain.ops.movement.joining import Parts, parts_along, scatter_copies
from toolchain.ops.movement.kernels import copies_kernel
from toolchain.ops.spec import (
    ALIKE,
    Alias,
    Array,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


@dataclass(frozen=True)
class Unpack(Attributes):
    """`axis`, whose indices become outputs, may be negative."""

    axis: int


def _axis(op: Op, graph: Graph) -> int:
    assert isinstance(op.attributes, Unpack)
    return resolve_axis(op.attributes.axis, len(graph.input(op, 0).shape))


def _parts(op: Op, graph: Graph) -> Parts:
    return parts_along(graph.input(op, 0), _axis(op, graph), [1] * len(op.outputs))


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, axis = graph.input(op, 0), _axis(op, graph)
    if x.shape[axis] != len(op.outputs):
        raise ValueError(f"axis {axis} of {x} does not give {len(op.outputs)} outputs")
    return (TensorType((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype),) * len(op.outputs)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    axis = _axis(op, graph)
    return tuple(np.take(inputs[0], index, axis) for index in range(len(op.outputs)))


def _copies(op: Op, graph: Graph) -> tuple[StridedCopy, ...]:
    return scatter_copies(_parts(op, graph), graph.input(op, 0).dtype.size_bytes)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return copies_kernel(op, graph, _copies(op, graph))


def _aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    parts, x = _parts(op, graph), graph.input(op, 0)
    if not parts.contiguous:
        return ()
    unit = parts.inner * x.dtype.size_bytes
    return tuple(Alias(name, x.name, index * unit) for index, name in enumerate(op.outputs))


def _read(node: TfliteNode) -> ReadOp:
    if node.options.num != len(node.outputs):
        raise node.unsupported(
            f"its options speak of {node.options.num} outputs, and it has {len(node.outputs)}"
        )
    return ReadOp(Unpack(int(node.options.axis)), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, Unpack)
    options = {"axis": op.attributes.axis, "num": len(op.outputs)}
    return WrittenOp("UNPACK", "UnpackOptions", options, version=2)


def _sample(rng: np.random.Generator) -> Graph:
    rank = int(rng.integers(2, 5))
    shape = sample_shape(rng, rank, 400)
    axis = int(rng.integers(rank))
    dtype, quantisation = sample_type(rng, (DType.INT32, DType.FLOAT32))
    x = Tensor("x", shape, dtype, quantisation)
    rest = (*shape[:axis], *shape[axis + 1 :])
    outputs = [Tensor(f"y{i}", rest, dtype, quantisation) for i in range(shape[axis])]
    names = [y.name for y in outputs]
    written = axis - rank if rng.random() < 0.5 else axis
    op = Op("unpack", "unpack", ("x",), tuple(names), Unpack(written))
    return Graph.build("sample", [x, *outputs], [op], ["x"], names)


SPEC = OldForm(
    quantised=ALIKE,
    kind="unpack",
    attributes=Unpack,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("UNPACK",), _read, _write),
    aliases=_aliases,
    types=frozenset(DType),
    limits="any type",
)
