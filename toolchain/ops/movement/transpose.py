"""Transpose: output axis i is input axis `permutation[i]`.

TFLite TRANSPOSE. Any element type; up to six dimensions after those that stay adjacent are merged.
If only dimensions of size 1 move, the output is a view.
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
    int32_constant,
    integers,
    resolve_axis,
    row_major,
    sample_shape,
    sample_type,
    strided_copy,
)
from toolchain.ops.movement.kernels import copies_kernel
from toolchain.ops.spec import (
    STORED,
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
class Transpose(Attributes):
    """With `layout` a front end inserted it to convert the model's layout to NHWC, or back."""

    permutation: tuple[int, ...]
    layout: bool = False


def _permutation(op: Op, rank: int) -> tuple[int, ...]:
    assert isinstance(op.attributes, Transpose)
    axes = tuple(resolve_axis(axis, rank) for axis in op.attributes.permutation)
    if sorted(axes) != list(range(rank)):
        raise ValueError(f"{list(axes)} does not permute {rank} dimensions")
    return axes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x = graph.input(op, 0)
    axes = _permutation(op, len(x.shape))
    return (TensorType(tuple(x.shape[axis] for axis in axes), x.dtype),)


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Every axis, wherever it comes from."""
    permutation = _permutation(op, len(graph.input(op, 0).shape))
    return tuple(
        Axis(axis, (Reach(source),), lambda part: op.attributes)
        for axis, source in enumerate(permutation)
    )


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (np.transpose(inputs[0], _permutation(op, inputs[0].ndim)),)


def _copies(op: Op, graph: Graph) -> tuple[StridedCopy, ...]:
    x, y = graph.input(op, 0), graph.output(op)
    strides = row_major(x.shape)
    reads = [strides[axis] for axis in _permutation(op, len(x.shape))]
    return strided_copy(y.shape, reads, row_major(y.shape), x.dtype.size_bytes)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return copies_kernel(op, graph, _copies(op, graph))


def _aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    x = graph.input(op, 0)
    moved = [axis for axis in _permutation(op, len(x.shape)) if x.shape[axis] > 1]
    return (Alias(op.outputs[0], op.inputs[0]),) if moved == sorted(moved) else ()


def _read(node: TfliteNode) -> ReadOp:
    return ReadOp(Transpose(integers(node, 1)), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, Transpose)
    permutation = int32_constant("permutation", op.attributes.permutation)
    return WrittenOp("TRANSPOSE", "TransposeOptions", extra_inputs=(permutation,), version=2)


def _sample(rng: np.random.Generator) -> Graph:
    rank = int(rng.integers(1, 6))
    shape = sample_shape(rng, rank)
    axes = tuple(int(axis) for axis in rng.permutation(rank))
    dtype, quantisation = sample_type(rng)
    x = Tensor("x", shape, dtype, quantisation)
    y = Tensor("y", tuple(shape[axis] for axis in axes), dtype, quantisation)
    written = tuple(axis - rank if rng.random() < 0.2 else axis for axis in axes)
    op = Op("transpose", "transpose", ("x",), ("y",), Transpose(written))
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


SPEC = OldForm(
    quantised=STORED,
    kind="transpose",
    attributes=Transpose,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("TRANSPOSE",), _read, _write),
    aliases=_aliases,
    axes=_axes,
    types=frozenset(DType),
    limits="any type, at most 6 dimensions; the permutation is constant",
)
