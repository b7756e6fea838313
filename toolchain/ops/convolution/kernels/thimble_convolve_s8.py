"""`thimble_convolve_s8`: any convolution, of filters in groups, two channels and up to four windows
at a time; `thimble_convolve_s4` of weights of four bits, four channels and two windows at a time.

Windows are copied to columns of int16. Windows that lie inside the image, or whose rows are one
word, take quicker paths than those at its edges.
"""

from __future__ import annotations

from types import MappingProxyType

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import Convolution, depth_of, filters_of, weight_zero_point
from toolchain.ops.convolution.kernels import blocks, shapes, windows

FUNCTIONS = MappingProxyType({8: "thimble_convolve_s8", 4: "thimble_convolve_s4"})


def kernel(
    op: kit.Operator[Convolution], window: kit.Window, width: blocks.Width = blocks.EIGHT_BITS
) -> kit.Kernel:
    """The kernel of any conv2d, or of a depthwise_conv2d of one channel."""
    filters = filters_of(op)
    depth = depth_of(filters, window)
    rows_are_words = width is blocks.EIGHT_BITS and _rows_are_words(op, window, depth)
    zero_point = weight_zero_point(op.input(kit.WEIGHTS))
    lanes = -(-filters.shape[1] // (4 * blocks.SUMMED_TAPS)) if zero_point else 0

    def call(at_once: int, lines: tuple[int, int]) -> kit.Call:
        shape = parts.conv_shape(op, window, depth, lines=lines, at_once=at_once)
        return parts.own_call(op, FUNCTIONS[width.bits], shape)

    def scratch_bytes(at_once: int) -> int:
        return column_bytes(window.kernel, depth, at_once) + 8 * at_once * lanes

    return blocks.blocked_kernel(
        op,
        FUNCTIONS,
        window,
        width,
        calls=call,
        scratch_bytes=scratch_bytes,
        gathered=lambda: gathered_windows(op, window, depth, rows_are_words=rows_are_words),
        extents=lambda touched: _extents(touched, width),
    )


def column_bytes(kernel: tuple[int, int], depth: int, columns: int) -> int:
    """Scratch in bytes for `columns` columns of taps in int16, and room to gather pixels whose
    channels are not whole words: one window or, of four columns, four.
    """
    taps, row = kit.round_up(kernel[0] * kernel[1] * depth, 4), kernel[1] * depth
    if depth % 4 == 0:
        return 2 * columns * taps
    windows = 4 if columns == 4 else 1
    return 2 * columns * taps + (row if row % 4 == 0 else windows * taps + 4)


def _extents(touched: kit.Touched, width: blocks.Width) -> kit.Extents:
    call = touched.call
    _, channels = shapes.groups_of(call)
    # A filter has whole words, and the factors of the lanes that hold window sums.
    weighted = kit.round_up(shapes.taps(call), 4)
    if call.get("shape.weight_zero_point"):
        weighted += 4 * -(-shapes.taps(call) // (4 * blocks.SUMMED_TAPS))
    scratch = column_scratch(call, weighted, call["shape.at_once"])
    return shapes.extents_of_groups(touched, width.parameter_bytes(channels, weighted), scratch)


def column_scratch(call: kit.Call, taps: int, columns: int) -> int:
    """Columns of `taps` int16; room to gather pixels that are not whole words, of four columns for
    four windows. As the header says.
    """
    row, windows = call["shape.kernel_w"] * call["shape.depth"], 4 if columns == 4 else 1
    if call["shape.depth"] % 4 == 0:
        return 2 * columns * taps
    return 2 * columns * taps + (
        row if row % 4 == 0 else windows * kit.round_up(call["shape.kernel_h"] * row, 4) + 4
    )


def gathered_windows(
    op: kit.AnyOperator, window: kit.Window, depth: int, *, rows_are_words: bool = False
) -> blocks.Gathered:
    """How often windows are gathered, each of which reads `depth` channels."""
    x, weights = op.x, op.input(kit.WEIGHTS)
    batches, out_h, out_w, _ = op.y.shape
    pixels, times = out_h * out_w, batches * (x.shape[3] // depth)
    words = -(-window.kernel[0] * window.kernel[1] * depth // 4)
    terms: windows.Counts = {"call": 1.0}
    if rows_are_words:
        terms |= {"word window": times * pixels, "word row": times * pixels * window.kernel[0]}
    else:
        terms |= windows.gathered_terms(op, window, depth, times)
    terms["group"] = times
    if weight_zero_point(weights):
        terms["summed column"] = times * pixels
        terms["summed column word"] = times * pixels * words
        words += -(-words // blocks.SUMMED_TAPS)
    return blocks.Gathered(terms, times, pixels, words)


def _rows_are_words(op: kit.AnyOperator, window: kit.Window, depth: int) -> bool:
    """Whether each row of a window is one word, of several pixels."""
    x = op.x
    runs = window.dilation[1] == 1 and depth == x.shape[3] and x.shape[2] * depth >= 4
    return runs and depth < 4 and window.kernel[1] * depth == 4
