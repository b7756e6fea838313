"""What the kernels share that sum a convolution over some of its channels or rows, in int32.

The operator's last input holds the sums of the parts before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.convolution.kernels.windows import Counts
from toolchain.ops.convolution.packing import Int8, by_blocks, folded_bias, joined, pair_words
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    SafeOverlap,
    Scratch,
    Terms,
    Touched,
)
from toolchain.ops.weighted import (
    INPUT,
    WEIGHTS,
    bias_of,
    constant_of,
)

SUMS = 3


def sums_kernel(
    op: Op,
    graph: Graph,
    function: str,
    sizes: Mapping[str, Argument],
    *,
    pack: Callable[[Int8, Int32], Int32],
    scratch_bytes: int,
    extents: Callable[[Touched], Extents],
    terms: Callable[[], Terms],
) -> Kernel:
    """A call of `function` with these sizes, whose parameters `pack` makes of the filters
    [channels, taps] and their biases.
    """
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    filters = constant_of(weights).astype(np.int8, copy=False).reshape(weights.shape[0], -1)
    bias = bias_of(op, graph, len(filters))
    arguments: dict[str, Argument] = {
        **sizes,
        "input": Input(INPUT),
        "parameters": Packed("parameters"),
        "scratch": Scratch(),
        "sums": Input(SUMS),
        "output": Output(0),
    }
    kernel = "x".join(map(str, weights.shape))
    # Sums of two pixels are read just before they are written.
    overlaps = (SafeOverlap(SUMS, exact=True),) if op.inputs[SUMS] else ()
    return Kernel(
        (Call(function, arguments),),
        extents,
        constants=(
            Constant(
                "parameters",
                lambda: pack(filters, folded_bias(bias, filters, x.q.zero_point)),
                f"biases and filters [{kernel}], packed for {function}",
            ),
        ),
        scratch_bytes=scratch_bytes,
        find_overlaps=lambda: overlaps,
        find_terms=terms,
    )


def pack_pairs(filters: Int8, bias: Int32) -> Int32:
    """Of each two channels the biases, then the filters."""
    return joined([by_blocks(bias, 2), pair_words(filters)])


def pair_bytes(channels: int, taps: int) -> int:
    """Bytes of what `pack_pairs` makes, of so many taps in whole words."""
    return 4 * -(-channels // 2) * (2 + 2 * taps // 4)


def pair_terms(op: Op, graph: Graph, gathered: Counts, pairs: int, words: int) -> Terms:
    """Of a kernel that multiplies so many `pairs` of windows of so many words by two channels at a
    time, after what `gathered` counts.
    """
    channels = graph.output(op).shape[3]
    blocks = pairs * -(-channels // 2)
    return gathered | {
        "pair of pixels": pairs,
        "block": blocks,
        "block word": blocks * words,
        "block added": blocks * bool(op.inputs[SUMS]),
        "lone channel": pairs * (channels % 2),
    }


def extents_of_sums(
    touched: Touched, read: int, written: int, parameter_bytes: int, scratch_bytes: int, reach: int
) -> Extents:
    """Of a kernel that reads so many bytes of the image and writes so many sums."""
    sums = whole(written, 4)
    inputs = {INPUT: whole(read)} | ({SUMS: sums} if touched.has(SUMS) else {})
    return Extents(inputs, {0: sums}, {"parameters": parameter_bytes}, scratch_bytes, reach)
