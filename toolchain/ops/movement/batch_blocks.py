"""Parts of space_to_batch and batch_to_space: blocks of pixels spread over the batch.

Pixel o * block + b - begin of image n goes to o of image b * batches + n (SPACE_TO_BATCH_ND) or
comes back (BATCH_TO_SPACE_ND); b is counted row-major, `begin` is padding or crop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy, row_major, strided_copy

_MOST_COPIES = 64


@dataclass(frozen=True)
class BatchBlocks(kit.Attributes):
    """The block of each dimension between batch and channels, and how much is added or cut off
    before and after.
    """

    block: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]


def batch_blocks(op: kit.Op) -> BatchBlocks:
    """The operator's attributes."""
    assert isinstance(op.attributes, BatchBlocks)
    return op.attributes


def check_blocks(op: kit.Operator[BatchBlocks], x: kit.Tensor) -> None:
    """Raise ValueError where block, ends and tensor contradict each other."""
    attributes = op.attributes
    if len(x.shape) not in (3, 4) or len(attributes.block) != len(x.shape) - 2:
        raise ValueError(f"blocks {list(attributes.block)} of {x}")
    if len(attributes.ends) != len(attributes.block) or min(attributes.block) < 1:
        raise ValueError(f"blocks {list(attributes.block)} with ends {list(attributes.ends)}")
    if min(min(pair) for pair in attributes.ends) < 0:
        raise ValueError(f"ends {list(attributes.ends)} are negative")


def spread_copies(
    op: kit.Operator[BatchBlocks], image: kit.Tensor, spread: kit.Tensor, *, gather: bool
) -> tuple[StridedCopy, ...]:
    """From `image` to `spread`, or with `gather` back. Raises UnsupportedError for too many."""
    attributes, bytes_ = op.attributes, image.dtype.size_bytes
    batches, sizes = image.shape[0], image.shape[1:-1]
    if np.prod(attributes.block) > _MOST_COPIES:
        raise op.refused(f"blocks of {list(attributes.block)} take more than {_MOST_COPIES} copies")
    inside, outside = row_major(image.shape), row_major(spread.shape)
    copies: list[StridedCopy] = []
    for number, place in enumerate(itertools.product(*(range(b) for b in attributes.block))):
        firsts, counts, starts = [], [], []
        for axis, (offset, block) in enumerate(zip(place, attributes.block, strict=True)):
            begin = attributes.ends[axis][0]
            first = max(0, -(-(begin - offset) // block))
            last = min((sizes[axis] - 1 + begin - offset) // block, spread.shape[axis + 1] - 1)
            firsts.append(first)
            counts.append(max(last - first + 1, 0))
            starts.append(first * block + offset - begin)
        image_at = sum(s * inside[a + 1] for a, s in enumerate(starts))
        spread_at = number * batches * outside[0]
        spread_at += sum(f * outside[a + 1] for a, f in enumerate(firsts))
        of_image = [inside[0]]
        of_image += [inside[a + 1] * block for a, block in enumerate(attributes.block)]
        of_image.append(1)
        of_spread = list(outside)
        shape = [batches, *counts, image.shape[-1]]
        if gather:
            copies += strided_copy(
                shape, of_spread, of_image, bytes_, source_offset=spread_at, target_offset=image_at
            )
        else:
            copies += strided_copy(
                shape, of_image, of_spread, bytes_, source_offset=image_at, target_offset=spread_at
            )
    return tuple(copies)


def blocks_form(
    kind: str,
    builtin: str,
    options_type: str,
    *,
    infer: Callable[[kit.Operator[BatchBlocks]], kit.TensorTypes],
    reference: Callable[[kit.Operator[BatchBlocks], kit.Inputs], kit.Arrays],
    select: kit.Select,
    gather: bool,
) -> kit.Form[BatchBlocks]:
    """The form of `kind`, TFLite's `builtin`. `gather`: from the spread images to the whole one."""
    return kit.Form(
        quantised=kit.ALIKE,
        kind=kind,
        attributes=BatchBlocks,
        infer=infer,
        reference=reference,
        select=select,
        sample=lambda rng: _sample(rng, kind, gather),
        tflite=kit.TfliteBinding((builtin,), _read, lambda op: _write(op, builtin, options_type)),
        types=frozenset(
            {kit.DType.INT8, kit.DType.INT16, kit.DType.INT32, kit.DType.INT64, kit.DType.FLOAT32}
        ),
        limits="any type but bool; constant operands; becomes a dilation where that is exact",
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    """The attributes of a TFLite operator with constant blocks and ends."""
    block = tuple(int(v) for v in node.constant(1).reshape(-1))
    ends = tuple((int(a), int(b)) for a, b in node.constant(2).reshape(-1, 2))
    return kit.ReadOp(BatchBlocks(block, ends), (0,))


def _write(op: kit.Operator[BatchBlocks], builtin: str, options_type: str) -> kit.WrittenOp:
    attributes = op.attributes
    constants = (
        kit.int32_constant("block", attributes.block),
        kit.int32_constant("ends", np.array(attributes.ends)),
    )
    return kit.WrittenOp(builtin, options_type, {}, constants, version=2)


def _sample(rng: np.random.Generator, kind: str, gather: bool) -> kit.Graph:
    block = tuple(int(b) for b in rng.integers(1, 4, int(rng.integers(1, 3))))
    dtype, quantisation = kit.sample_type(rng)
    ends = ((0, 0),) * len(block)
    if rng.random() >= 0.4:
        ends = tuple((int(a), int(b)) for a, b in rng.integers(0, 4, (len(block), 2)))
    spread, sizes = [], []
    for side, (before, after) in zip(block, ends, strict=True):
        spread.append(-(-(before + after + 1) // side) + int(rng.integers(0, 4)))
        sizes.append(spread[-1] * side - before - after)
    batches, channels = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    image = (batches, *sizes, channels)
    images = (batches * int(np.prod(block)), *spread, channels)
    x = kit.Tensor("x", images if gather else image, dtype, quantisation)
    attributes = BatchBlocks(block, ends)
    return kit.sample(kind, attributes, x, name="gather" if gather else "spread")
