"""Pixels spread over the batch, so that neighbours lie in different images.

TFLite SPACE_TO_BATCH_ND, which older converters write in front of a dilated convolution. Padding is
the zero point.
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
    sizes = [size + sum(ends) for size, ends in zip(x.shape[1:-1], attributes.ends, strict=True)]
    if any(size % block for size, block in zip(sizes, attributes.block, strict=True)):
        raise ValueError(f"padded to {sizes}, no multiple of {list(attributes.block)}")
    spread = [size // block for size, block in zip(sizes, attributes.block, strict=True)]
    batches = x.shape[0] * int(np.prod(attributes.block))
    return (kit.TensorType((batches, *spread, x.shape[-1]), x.dtype),)


def _fill(op: kit.Operator[BatchBlocks]) -> int | None:
    """The byte that padding holds; None where there is none."""
    if not any(sum(ends) for ends in op.attributes.ends):
        return None
    y = op.y
    return y.q.zero_point if y.dtype is kit.DType.INT8 else 0


def _reference(op: kit.Operator[BatchBlocks], inputs: kit.Inputs) -> kit.Arrays:
    attributes, y = op.attributes, op.y
    widths = [(0, 0), *attributes.ends, (0, 0)]
    padded = np.pad(inputs[0], widths, constant_values=_fill(op) or 0)
    spread = range(1, len(y.shape) - 1)
    split = [padded.shape[0]]
    for axis, block in zip(spread, attributes.block, strict=True):
        split += [padded.shape[axis] // block, block]
    order = [2 * i for i in spread] + [0] + [2 * i - 1 for i in spread]
    moved = padded.reshape(*split, y.shape[-1]).transpose(*order, len(split))
    return (moved.reshape(y.shape),)


def _select(op: kit.Operator[BatchBlocks], core: kit.Core) -> kit.Kernel:
    copies = spread_copies(op, op.x, op.y, gather=False)
    return copies_kernel(op, copies, _fill(op))


SPEC = blocks_form(
    "space_to_batch",
    "SPACE_TO_BATCH_ND",
    "SpaceToBatchNDOptions",
    infer=_infer,
    reference=_reference,
    select=_select,
    gather=False,
)
