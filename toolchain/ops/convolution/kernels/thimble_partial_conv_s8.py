"""int32 sums of a convolution over some of its channels or rows: `thimble_partial_conv_s8` of any
windows, two by two channels at a time; `thimble_partial_conv_1x1_s8` of windows of one pixel whose
channels are whole words; `thimble_partial_conv_lanes_s8` of any, in Helium's vectors.

The operator's last input holds the sums of the parts before.
"""

from __future__ import annotations

import math

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import Windowed, filters_of, window_of
from toolchain.ops.convolution.kernels import lanes, shapes, windows
from toolchain.ops.convolution.kernels.thimble_convolve_s8 import column_bytes, column_scratch

FUNCTIONS = WINDOWS, PIXELS, LANES = (
    "thimble_partial_conv_s8",
    "thimble_partial_conv_1x1_s8",
    "thimble_partial_conv_lanes_s8",
)
SUMS = 3


def kernel(op: kit.Operator[Windowed], core: kit.Core) -> kit.Kernel:
    """The kernel of any partial_conv2d."""
    x, weights, y, window = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y.shape, window_of(op)
    filters, depth = filters_of(op), x.shape[3]
    bias = kit.bias_of(op, len(filters))
    alone = window.kernel == window.stride == parts.PLAIN and window.padding == kit.UNPADDED
    sizes: dict[str, kit.Argument] = {"shape": parts.conv_shape(op, window, depth)}
    function, pack, extents, terms = WINDOWS, _pack_pairs, _extents, _terms
    scratch_bytes = column_bytes(window.kernel, depth, 2)
    if core.mve:
        function, pack, extents, terms = LANES, _pack_fours, _lane_extents, _lane_terms
        scratch_bytes = lanes.column_bytes(filters.shape[1])
    elif alone and depth % 4 == 0:
        function, extents, terms = PIXELS, _pixel_extents, _pixel_terms
        sizes = {"pixels": y[0] * y[1] * y[2], "depth": depth, "channels": y[3]}
    arguments: dict[str, kit.Argument] = {
        **sizes,
        "input": kit.Input(kit.INPUT),
        "parameters": kit.Packed("parameters"),
        "scratch": kit.Scratch(),
        "sums": kit.Input(SUMS),
        "output": kit.Output(0),
    }
    taps = "x".join(map(str, weights.shape))
    # Sums of two pixels are read just before they are written.
    overlaps = (kit.SafeOverlap(SUMS, exact=True),) if op.inputs[SUMS] is not None else ()
    return kit.Kernel(
        (kit.Call(function, arguments),),
        extents,
        constants=(
            kit.Constant(
                "parameters",
                lambda: pack(filters, packing.folded_bias(bias, filters, x.q.zero_point)),
                f"biases and filters [{taps}], packed for {function}",
            ),
        ),
        scratch_bytes=scratch_bytes,
        find_overlaps=lambda: overlaps,
        find_terms=lambda: terms(op, window),
    )


def _pack_pairs(filters: packing.Int8, bias: kit.Int32) -> kit.Int32:
    """The biases of two channels, then their filters, pair by pair."""
    return packing.joined([packing.by_blocks(bias, 2), packing.pair_words(filters)])


def _pair_bytes(channels: int, taps: int) -> int:
    """Bytes of what `_pack_pairs` makes, of so many taps in whole words."""
    return 4 * -(-channels // 2) * (2 + 2 * taps // 4)


def _pack_fours(filters: packing.Int8, bias: kit.Int32) -> kit.Int32:
    """All biases, then the filters [channels, taps], of four channels at a time."""
    biases = packing.by_blocks(bias, 4).reshape(-1)
    return np.concatenate([biases, lanes.four_turns(filters).reshape(-1)]).astype(np.int32)


def _extents(touched: kit.Touched) -> kit.Extents:
    wide = kit.round_up(shapes.taps(touched.call), 4)
    parameters = _pair_bytes(touched.call["shape.output_c"], wide)
    return _of_windows(touched, parameters, column_scratch(touched.call, wide, 2))


def _lane_extents(touched: kit.Touched) -> kit.Extents:
    taps = shapes.taps(touched.call)
    filters = 4 + kit.round_up(taps, packing.VECTOR_BYTES)
    parameters = kit.round_up(touched.call["shape.output_c"], 4) * filters
    return _of_windows(touched, parameters, lanes.column_bytes(taps))


def _of_windows(touched: kit.Touched, parameter_bytes: int, scratch_bytes: int) -> kit.Extents:
    """The extents of windows over one image by a `thimble_conv_shape`."""
    call = touched.call
    read, written = (
        math.prod(shape[1:]) for shape in (shapes.input_shape(call), shapes.output_shape(call))
    )
    reach = kit.reach_in(call, "shape")
    return _of_sums(touched, (read, written), parameter_bytes, scratch_bytes, reach)


def _pixel_extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    pixels, depth, channels = call["pixels"], call["depth"], call["channels"]
    parameters = _pair_bytes(channels, kit.round_up(depth, 4))
    return _of_sums(touched, (pixels * depth, pixels * channels), parameters, 4 * depth, 0)


def _of_sums(
    touched: kit.Touched,
    elements: tuple[int, int],
    parameter_bytes: int,
    scratch_bytes: int,
    reach: int,
) -> kit.Extents:
    """The bytes that a kernel touches of so many elements of the image, and so many sums."""
    sums = kit.whole(elements[1], 4)
    inputs = {kit.INPUT: kit.whole(elements[0])} | ({SUMS: sums} if touched.has(SUMS) else {})
    return kit.Extents(inputs, {0: sums}, {"parameters": parameter_bytes}, scratch_bytes, reach)


def _terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    batches, out_h, out_w, _ = op.y.shape
    pixels, depth = out_h * out_w, op.input(kit.INPUT).shape[3]
    words = -(-window.kernel[0] * window.kernel[1] * depth // 4)
    gathered: windows.Counts = {"call": 1.0} | windows.gathered_terms(op, window, depth, batches)
    gathered["pixel"] = batches * pixels
    return _pair_terms(op, gathered, batches * -(-pixels // 2), words)


def _pixel_terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    batches, out_h, out_w, _ = op.y.shape
    pairs, words = -(-batches * out_h * out_w // 2), -(-op.input(kit.INPUT).shape[3] // 4)
    return _pair_terms(op, {"call": 1.0, "column word": 2 * pairs * words}, pairs, words)


def _pair_terms(op: kit.AnyOperator, gathered: windows.Counts, pairs: int, words: int) -> kit.Terms:
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


def _lane_terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    terms, channels = lanes.window_terms(op, window), op.y.shape[3]
    taps = math.prod(window.kernel) * op.x.shape[3]
    fours = op.y.elements // channels * -(-channels // 4)
    return {
        **terms,
        **lanes.product_terms(terms["pair of pixels"], channels, taps),
        "four begun": fours,
        "four added": fours * (op.inputs[SUMS] is not None),
    }
