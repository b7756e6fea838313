"""Pixels spread over the batch, so that neighbours lie in different images.

TFLite SPACE_TO_BATCH_ND, which older converters write in front of a dilated convolution. Padding is
the zero point.
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
    sizes = [size + sum(ends) for size, ends in zip(x.shape[1:-1], attributes.ends, strict=True)]
    if any(size % block for size, block in zip(sizes, attributes.block, strict=True)):
        raise ValueError(f"padded to {sizes}, no multiple of {list(attributes.block)}")
    spread = [size // block for size, block in zip(sizes, attributes.block, strict=True)]
    batches = x.shape[0] * int(np.prod(attributes.block))
    return (TensorType((batches, *spread, x.shape[-1]), x.dtype),)


def _fill(op: Op, graph: Graph) -> int | None:
    """The byte that padding holds; None where there is none."""
    if not any(sum(ends) for ends in batch_blocks(op).ends):
        return None
    y = graph.output(op)
    return y.q.zero_point if y.dtype is DType.INT8 else 0


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    attributes, y = batch_blocks(op), graph.output(op)
    widths = [(0, 0), *attributes.ends, (0, 0)]
    padded = np.pad(inputs[0], widths, constant_values=_fill(op, graph) or 0)
    spread = range(1, len(y.shape) - 1)
    split = [padded.shape[0]]
    for axis, block in zip(spread, attributes.block, strict=True):
        split += [padded.shape[axis] // block, block]
    order = [2 * i for i in spread] + [0] + [2 * i - 1 for i in spread]
    moved = padded.reshape(*split, y.shape[-1]).transpose(*order, len(split))
    return (moved.reshape(y.shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    copies = spread_copies(op, graph.input(op, 0), graph.output(op), gather=False)
    return copies_kernel(op, graph, copies, _fill(op, graph))


def _sample(rng: np.random.Generator) -> Graph:
    block, (dtype, quantisation) = random_block(rng), sample_type(rng)
    ends = random_ends(rng, len(block))
    sizes = []
    for side, (before, after) in zip(block, ends, strict=True):
        least = -(-(before + after + 1) // side)
        sizes.append(side * int(rng.integers(least, least + 4)) - before - after)
    batches, channels = int(rng.integers(1, 4)), int(rng.integers(1, 9))
    spread = [
        (size + sum(pair)) // side for size, pair, side in zip(sizes, ends, block, strict=True)
    ]
    x = Tensor("x", (batches, *sizes, channels), dtype, quantisation)
    y_shape = (batches * int(np.prod(block)), *spread, channels)
    y = Tensor("y", y_shape, dtype, quantisation)
    op = Op("space_to_batch", "spread", ("x",), ("y",), BatchBlocks(block, ends))
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


SPEC = OldForm(
    quantised=ALIKE,
    kind="space_to_batch",
    attributes=BatchBlocks,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(
        ("SPACE_TO_BATCH_ND",),
        read_blocks,
        lambda op, graph: write_blocks(op, "SPACE_TO_BATCH_ND", "SpaceToBatchNDOptions"),
    ),
    types=frozenset({DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32}),
    limits="any type but bool; constant operands; becomes a dilation where that is exact",
)
