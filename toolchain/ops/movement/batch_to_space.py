"""Pixels of several images put together into one: the inverse of `space_to_batch`.

TFLite BATCH_TO_SPACE_ND, which older converters write behind a dilated convolution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.batch_blocks import (
    BatchBlocks,
    check_blocks,
    random_block,
    random_ends,
    read_blocks,
    spread_copies,
    write_blocks,
)
from toolchain.ops.movement.kernels import copies_kernel


def _infer(op: kit.Operator[BatchBlocks]) -> tuple[kit.TensorType, ...]:
    x, attributes = op.x, op.attributes
    check_blocks(op, x)
    images = int(np.prod(attributes.block))
    if x.shape[0] % images:
        raise ValueError(f"{x.shape[0]} images, no multiple of {images}")
    whole = [size * block for size, block in zip(x.shape[1:-1], attributes.block, strict=True)]
    sizes = [size - sum(ends) for size, ends in zip(whole, attributes.ends, strict=True)]
    if min(sizes) < 1:
        raise ValueError(f"crops {list(attributes.ends)} leave nothing of {whole}")
    return (kit.TensorType((x.shape[0] // images, *sizes, x.shape[-1]), x.dtype),)


def _reference(op: kit.Operator[BatchBlocks], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    attributes, x, y = op.attributes, op.x, op.y
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


def _select(op: kit.Operator[BatchBlocks], core: kit.Core) -> kit.Kernel:
    copies = spread_copies(op, op.y, op.x, gather=True)
    return copies_kernel(op, copies)


def _sample(rng: np.random.Generator) -> kit.Graph:
    block, (dtype, quantisation) = random_block(rng), kit.sample_type(rng)
    ends = random_ends(rng, len(block))
    spread, sizes = [], []
    for side, (before, after) in zip(block, ends, strict=True):
        spread.append(-(-(before + after + 1) // side) + int(rng.integers(0, 4)))
        sizes.append(spread[-1] * side - before - after)
    batches, channels = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    x_shape = (batches * int(np.prod(block)), *spread, channels)
    x = kit.Tensor("x", x_shape, dtype, quantisation)
    y = kit.Tensor("y", (batches, *sizes, channels), dtype, quantisation)
    op = kit.Op("batch_to_space", "gather", ("x",), ("y",), BatchBlocks(block, ends))
    return kit.Graph.build("sample", [x, y], [op], ["x"], ["y"])


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="batch_to_space",
    attributes=BatchBlocks,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(
        ("BATCH_TO_SPACE_ND",),
        read_blocks,
        lambda op: write_blocks(op, "BATCH_TO_SPACE_ND", "BatchToSpaceNDOptions"),
    ),
    types=frozenset(
        {kit.DType.INT8, kit.DType.INT16, kit.DType.INT32, kit.DType.INT64, kit.DType.FLOAT32}
    ),
    limits="any type but bool; constant operands; becomes a dilation where that is exact",
)
