"""Pixels of several images put together into one: the inverse of `space_to_batch`.

TFLite BATCH_TO_SPACE_ND, which older converters write behind a dilated convolution.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.batch_blocks import (
    BatchBlocks,
    blocks_form,
    check_blocks,
    spread_copies,
)
from toolchain.ops.movement.kernels import copies_kernel


def _infer(op: kit.Operator[BatchBlocks]) -> kit.TensorTypes:
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


def _reference(op: kit.Operator[BatchBlocks], inputs: kit.Inputs) -> kit.Arrays:
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


SPEC = blocks_form(
    "batch_to_space",
    "BATCH_TO_SPACE_ND",
    "BatchToSpaceNDOptions",
    infer=_infer,
    reference=_reference,
    select=_select,
    gather=True,
)
