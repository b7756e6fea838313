"""What depth_to_space and space_to_depth share: square blocks of pixels and their channels."""

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
    row_major,
    sample_type,
    strided_copy,
)
from toolchain.ops.movement.kernels import copies_kernel
from toolchain.ops.spec import (
    ALIKE,
    Array,
    Axis,
    Reach,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_SWAP = (0, 1, 3, 2, 4, 5)
"""[n][h][w][block row][block column][c] to [n][h][block row][w][block column][c], and back."""


@dataclass(frozen=True)
class Blocks(Attributes):
    """`size`: rows and columns of a block."""

    size: int


def _size(op: Op) -> int:
    assert isinstance(op.attributes, Blocks)
    return op.attributes.size


def blocks_spec(kind: str, *, to_space: bool) -> OldForm:
    """The spec of the move of channels into blocks of pixels (`to_space`), or back."""
    options = "DepthToSpaceOptions" if to_space else "SpaceToDepthOptions"

    def infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
        x, size = graph.input(op, 0), _size(op)
        if len(x.shape) != 4 or size < 1:
            raise ValueError(f"blocks of {size} in {x}")
        batches, rows, columns, depth = x.shape
        if to_space:
            if depth % (size * size):
                raise ValueError(f"{depth} channels do not fill blocks of {size} by {size}")
            shape = (batches, rows * size, columns * size, depth // (size * size))
        else:
            if rows % size or columns % size:
                raise ValueError(f"blocks of {size} by {size} do not fill {rows} by {columns}")
            shape = (batches, rows // size, columns // size, depth * size * size)
        return (TensorType(shape, x.dtype),)

    def fine(op: Op, graph: Graph) -> tuple[int, ...]:
        """The input's shape with its blocks as dimensions of their own."""
        (batches, rows, columns, depth), size = graph.input(op, 0).shape, _size(op)
        if to_space:
            return (batches, rows, columns, size, size, depth // (size * size))
        return (batches, rows // size, size, columns // size, size, depth)

    def reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
        swapped = inputs[0].reshape(fine(op, graph)).transpose(_SWAP)
        return (swapped.reshape(graph.output(op).shape),)

    def copies(op: Op, graph: Graph) -> tuple[StridedCopy, ...]:
        source = fine(op, graph)
        target = [source[axis] for axis in _SWAP]
        reads = [row_major(source)[axis] for axis in _SWAP]
        size_bytes = graph.input(op, 0).dtype.size_bytes
        return strided_copy(target, reads, row_major(target), size_bytes)

    def select(op: Op, graph: Graph, core: Core) -> Kernel:
        return copies_kernel(op, graph, copies(op, graph))

    def axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
        """Batches, rows and columns; `to_space` makes as many of these at once as a block has."""
        size = _size(op)

        def reach(axis: int) -> Reach:
            if to_space:
                return Reach(axis, extent=size, divisor=size, whole=True)
            return Reach(axis, size, size)

        reaches = (Reach(0), reach(1), reach(2))
        return tuple(Axis(r.axis, (r,), lambda part: op.attributes) for r in reaches)

    def read(node: TfliteNode) -> ReadOp:
        return ReadOp(Blocks(int(node.options.blockSize)), (0,))

    def write(op: Op, graph: Graph) -> WrittenOp:
        return WrittenOp(kind.upper(), options, {"blockSize": _size(op)})

    def sample(rng: np.random.Generator) -> Graph:
        size = int(rng.integers(1, 5))
        batches, rows, columns, depth = (int(d) for d in rng.integers(1, 6, 4))
        few = (batches, rows, columns, depth * size * size)
        many = (batches, rows * size, columns * size, depth)
        dtype, quantisation = sample_type(rng, (DType.INT32, DType.FLOAT32))
        shapes = (few, many) if to_space else (many, few)
        x, y = (
            Tensor(name, shape, dtype, quantisation)
            for name, shape in zip("xy", shapes, strict=True)
        )
        return Graph.build(
            "sample", [x, y], [Op(kind, kind, ("x",), ("y",), Blocks(size))], "x", "y"
        )

    return OldForm(
        quantised=ALIKE,
        kind=kind,
        attributes=Blocks,
        infer=infer,
        reference=reference,
        select=select,
        sample=sample,
        tflite=TfliteBinding((kind.upper(),), read, write),
        axes=axes,
        types=frozenset(DType),
        limits="any type, NHWC",
    )
