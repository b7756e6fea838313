"""Pixels of several images put together into one: the inverse of `space_to_batch`.

TFLite BATCH_TO_SPACE_ND, which older converters write behind a dilated convolution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.movement.batch_blocks import (
    BatchBlocks,
    batch_blocks,
    check_blocks,
    random_block,
    random_ends,
    read_blocks,
    spread_copies,
    write_blocks,
)
from toolchain.ops.movement.copies import sample_type
from toolchain.ops.movement.kernels import copies_kernel
from toolchain.ops.spec import ALIKE, Array, TensorType, TfliteBinding


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, attributes = graph.input(op, 0), batch_blocks(op)
    check_blocks(op, x)
    images = int(np.prod(attributes.block))
    if x.shape[0] % images:
        raise ValueError(f"{x.shape[0]} images, no multiple of {images}")
    whole = [size * block for size, block in zip(x.shape[1:-1], attributes.block, strict=True)]
    sizes = [size - sum(ends) for size, ends in zip(whole, attributes.ends, strict=True)]
    if min(sizes) < 1:
        raise ValueError(f"crops {list(attributes.ends)} leave nothing of {whole}")
    return (TensorType((x.shape[0] // images, *sizes, x.shape[-1]), x.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    attributes, x, y = batch_blocks(op), graph.input(op, 0), graph.output(op)
    count = len(attributes.block)
    split = inputs[0].reshape(*attributes.block, y.shape[0], *x.shape[1:])
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    whole = [size * block for size, block in zip(x.shape[1:-1], attributes.block, strict=True)]
    moved = split.transpose(*order, 2 * count + 1).reshape(y.shape[0], *whole, y.shape[-1])
    for axis, (before, _) in enumerate(attributes.ends, 1):
        moved = moved.take(range(before, before + y.shape[axis]), axis=axis)
    return (moved,)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    copies = spread_copies(op, graph.output(op), graph.input(op, 0), gather=True)
    return copies_kernel(op, graph, copies)


def _sample(rng: np.random.Generator) -> Graph:
    block, (dtype, quantisation) = random_block(rng), sample_type(rng)
    ends = random_ends(rng, len(block))
    spread, sizes = [], []
    for side, (before, after) in zip(block, ends, strict=True):
        spread.append(-(-(before + after + 1) // side) + int(rng.integers(0, 4)))
        sizes.append(spread[-1] * side - before - after)
    batches, channels = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    x_shape = (batches * int(np.prod(block)), *spread, channels)
    x = Tensor("x", x_shape, dtype, quantisation)
    y = Tensor("y", (batches, *sizes, channels), dtype, quantisation)
    op = Op("batch_to_space", "gather", ("x",), ("y",), BatchBlocks(block, ends))
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


SPEC = OldForm(
    quantised=ALIKE,
    kind="batch_to_space",
    attributes=BatchBlocks,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(
        ("BATCH_TO_SPACE_ND",),
        read_blocks,
        lambda op, graph: write_blocks(op, "BATCH_TO_SPACE_ND", "BatchToSpaceNDOptions"),
    ),
    types=frozenset({DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32}),
    limits="any type but bool; constant operands; becomes a dilation where that is exact",
)
