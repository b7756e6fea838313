"""Parts of depth_to_space and space_to_depth: square blocks of pixels and their channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy, row_major, strided_copy
from toolchain.ops.movement.kernels import copies_kernel

_SWAP = (0, 1, 3, 2, 4, 5)
"""[n][h][w][block row][block column][c] to [n][h][block row][w][block column][c], and back."""


@dataclass(frozen=True)
class Blocks(kit.Attributes):
    """`size`: rows and columns of a block."""

    size: int


def blocks_spec(kind: str, *, to_space: bool) -> kit.Form[Blocks]:
    """The spec of the move of channels into blocks of pixels (`to_space`), or back."""
    options = "DepthToSpaceOptions" if to_space else "SpaceToDepthOptions"

    def infer(op: kit.Operator[Blocks]) -> kit.TensorTypes:
        x, size = op.x, op.attributes.size
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
        return (kit.TensorType(shape, x.dtype),)

    def fine(op: kit.Operator[Blocks]) -> tuple[int, ...]:
        """The input's shape with its blocks as dimensions of their own."""
        (batches, rows, columns, depth), size = op.x.shape, op.attributes.size
        if to_space:
            return (batches, rows, columns, size, size, depth // (size * size))
        return (batches, rows // size, size, columns // size, size, depth)

    def reference(op: kit.Operator[Blocks], inputs: kit.Inputs) -> kit.Arrays:
        swapped = inputs[0].reshape(fine(op)).transpose(_SWAP)
        return (swapped.reshape(op.y.shape),)

    def copies(op: kit.Operator[Blocks]) -> tuple[StridedCopy, ...]:
        source = fine(op)
        target = [source[axis] for axis in _SWAP]
        reads = [row_major(source)[axis] for axis in _SWAP]
        size_bytes = op.x.dtype.size_bytes
        return strided_copy(target, reads, row_major(target), size_bytes)

    def select(op: kit.Operator[Blocks], core: kit.Core) -> kit.Kernel:
        return copies_kernel(op, copies(op))

    def axes(op: kit.Operator[Blocks]) -> tuple[kit.Axis, ...]:
        """Batches, rows and columns; `to_space` makes as many of these at once as a block has."""
        size = op.attributes.size

        def reach(axis: int) -> kit.Reach:
            if to_space:
                return kit.Reach(axis, extent=size, divisor=size, whole=True)
            return kit.Reach(axis, size, size)

        reaches = (kit.Reach(0), reach(1), reach(2))
        return tuple(kit.Axis(r.axis, (r,)) for r in reaches)

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        return kit.ReadOp(Blocks(int(node.options.blockSize)), (0,))

    def write(op: kit.Operator[Blocks]) -> kit.WrittenOp:
        return kit.WrittenOp(kind.upper(), options, {"blockSize": op.attributes.size})

    def sample(rng: np.random.Generator) -> kit.Graph:
        size = int(rng.integers(1, 5))
        batches, rows, columns, depth = (int(d) for d in rng.integers(1, 6, 4))
        shape = (batches, rows * size, columns * size, depth)
        if to_space:
            shape = (batches, rows, columns, depth * size * size)
        x = kit.Tensor("x", shape, *kit.sample_type(rng, (kit.DType.INT32, kit.DType.FLOAT32)))
        return kit.sample(kind, Blocks(size), x)

    return kit.Form(
        quantised=kit.ALIKE,
        kind=kind,
        attributes=Blocks,
        infer=infer,
        reference=reference,
        select=select,
        sample=sample,
        tflite=kit.TfliteBinding((kind.upper(),), read, write),
        axes=axes,
        types=frozenset(kit.DType),
        limits="any type, NHWC",
    )
