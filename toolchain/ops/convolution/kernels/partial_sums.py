"""Parts of the kernels that sum a convolution over some of its channels or rows, in int32.

The operator's last input holds the sums of the parts before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution.common import filters_of
from toolchain.ops.convolution.kernels import shapes, windows

SUMS = 3


def sums_kernel(
    op: kit.AnyOperator,
    function: str,
    sizes: Mapping[str, kit.Argument],
    *,
    pack: Callable[[packing.Int8, kit.Int32], kit.Int32],
    scratch_bytes: int,
    extents: Callable[[kit.Touched], kit.Extents],
    terms: Callable[[], kit.Terms],
) -> kit.Kernel:
    """A call of `function` with these sizes, whose parameters `pack` makes of the filters
    [channels, taps] and their biases.
    """
    x, weights, filters = op.input(kit.INPUT), op.input(kit.WEIGHTS), filters_of(op)
    bias = kit.bias_of(op, len(filters))
    arguments: dict[str, kit.Argument] = {
        **sizes,
        "input": kit.Input(kit.INPUT),
        "parameters": kit.Packed("parameters"),
        "scratch": kit.Scratch(),
        "sums": kit.Input(SUMS),
        "output": kit.Output(0),
    }
    kernel = "x".join(map(str, weights.shape))
    # Sums of two pixels are read just before they are written.
    overlaps = (kit.SafeOverlap(SUMS, exact=True),) if op.inputs[SUMS] is not None else ()
    return kit.Kernel(
        (kit.Call(function, arguments),),
        extents,
        constants=(
            kit.Constant(
                "parameters",
                lambda: pack(filters, packing.folded_bias(bias, filters, x.q.zero_point)),
                f"biases and filters [{kernel}], packed for {function}",
            ),
        ),
        scratch_bytes=scratch_bytes,
        find_overlaps=lambda: overlaps,
        find_terms=terms,
    )


def pack_pairs(filters: packing.Int8, bias: kit.Int32) -> kit.Int32:
    """The biases of two channels, then their filters, pair by pair."""
    return packing.joined([packing.by_blocks(bias, 2), packing.pair_words(filters)])


def pair_bytes(channels: int, taps: int) -> int:
    """Bytes of what `pack_pairs` makes, of so many taps in whole words."""
    return 4 * -(-channels // 2) * (2 + 2 * taps // 4)


def pair_terms(op: kit.AnyOperator, gathered: windows.Counts, pairs: int, words: int) -> kit.Terms:
    """Terms of a kernel that multiplies `pairs` of windows of so many words by two channels at a
    time, after what `gathered` counts.
    """
    channels = op.y.shape[3]
    blocks = pairs * -(-channels // 2)
    return gathered | {
        "pair of pixels": pairs,
        "block": blocks,
        "block word": blocks * words,
        "block added": blocks * (op.inputs[SUMS] is not None),
        "lone channel": pairs * (channels % 2),
    }


def extents_of_sums(
    touched: kit.Touched,
    read: int,
    written: int,
    parameter_bytes: int,
    scratch_bytes: int,
    reach: int,
) -> kit.Extents:
    """The bytes that a kernel touches: `read` of the image, and as many sums as are `written`."""
    sums = kit.whole(written, 4)
    inputs = {kit.INPUT: kit.whole(read)} | ({SUMS: sums} if touched.has(SUMS) else {})
    return kit.Extents(inputs, {0: sums}, {"parameters": parameter_bytes}, scratch_bytes, reach)


def extents_of_windows(
    touched: kit.Touched, parameter_bytes: int, scratch_bytes: int
) -> kit.Extents:
    """As `extents_of_sums`, of windows over one image by a `thimble_conv_shape`."""
    call = touched.call
    read, written = (
        math.prod(shape[1:]) for shape in (shapes.input_shape(call), shapes.output_shape(call))
    )
    reach = kit.reach_in(call, "shape")
    return extents_of_sums(touched, read, written, parameter_bytes, scratch_bytes, reach)
