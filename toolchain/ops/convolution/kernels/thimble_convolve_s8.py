"""`thimble_convolve_s8`: any convolution, of filters in groups, two channels and up to four windows
at a time.

Windows are copied to columns of int16. Those that lie inside the image, or whose rows are one word,
take quicker paths than those at its edges.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution, weight_zero_point
from toolchain.ops.convolution.kernel_parts import own_requant
from toolchain.ops.convolution.kernels.blocks import (
    EIGHT_BITS,
    SUMMED_TAPS,
    Form,
    Gathered,
    Width,
    blocked_kernel,
)
from toolchain.ops.convolution.kernels.shape import extents_of_groups, groups_of, taps
from toolchain.ops.convolution.kernels.windows import Counts, gathered_terms
from toolchain.ops.convolution.packing import Int8
from toolchain.ops.convolution.structs import conv_shape, own_arguments
from toolchain.ops.weighted import WEIGHTS
from toolchain.ops.window import Window

FUNCTION = "thimble_convolve_s8"


def kernel(op: kit.Operator[Convolution], window: Window, filters: Int8) -> kit.Kernel:
    """`filters` are [channels, height, width, depth]."""
    words = _rows_are_words(op, window, filters.shape[3])
    return of_width(FUNCTION, EIGHT_BITS, op, window, filters, rows_are_words=words)


def of_width(
    function: str,
    width: Width,
    op: kit.Operator[Convolution],
    window: Window,
    filters: Int8,
    *,
    rows_are_words: bool = False,
) -> kit.Kernel:
    """The kernel of weights so wide. `rows_are_words`: it reads each row of a window as a word."""
    depth, rows = filters.shape[3], filters.reshape(len(filters), -1)
    zero_point = weight_zero_point(op.input(WEIGHTS))
    lanes = -(-rows.shape[1] // (4 * SUMMED_TAPS)) if zero_point else 0

    def form(at_once: int) -> Form:
        def calls(input_line: int, output_line: int) -> tuple[kit.Call, ...]:
            lines = (input_line, output_line)
            shape = conv_shape(op, window, depth, lines=lines, at_once=at_once)
            return (kit.Call(function, own_arguments(shape, own_requant(op))),)

        return Form(calls, column_bytes(window.kernel, depth, at_once) + 8 * at_once * lanes)

    return blocked_kernel(
        op,
        function,
        window,
        filters,
        width,
        form=form,
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


def _extents(touched: kit.Touched, width: Width) -> kit.Extents:
    call = touched.call
    _, channels = groups_of(call)
    # Of a filter: whole words, and the factors of the lanes that hold window sums.
    weighted = kit.round_up(taps(call), 4)
    if call.get("shape.weight_zero_point"):
        weighted += 4 * -(-taps(call) // (4 * SUMMED_TAPS))
    scratch = column_scratch(call, weighted, call["shape.at_once"])
    return extents_of_groups(touched, width.parameter_bytes(channels, weighted), scratch)


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
    op: kit.AnyOperator, window: Window, depth: int, *, rows_are_words: bool = False
) -> Gathered:
    """How often windows are gathered, each of which reads `depth` channels."""
    x, weights = op.x, op.input(WEIGHTS)
    batches, out_h, out_w, _ = op.y.shape
    pixels, times = out_h * out_w, batches * (x.shape[3] // depth)
    words = -(-window.kernel[0] * window.kernel[1] * depth // 4)
    terms: Counts = {"call": 1.0}
    if rows_are_words:
        terms |= {"word window": times * pixels, "word row": times * pixels * window.kernel[0]}
    else:
        terms |= gathered_terms(op, window, depth, times)
    terms["group"] = times
    if weight_zero_point(weights):
        terms["summed column"] = times * pixels
        terms["summed column word"] = times * pixels * words
        words += -(-words // SUMMED_TAPS)
    return Gathered(terms, times, pixels, words)


def _rows_are_words(op: kit.AnyOperator, window: Window, depth: int) -> bool:
    """Whether each row of a window is one word, of several pixels."""
    x = op.x
    runs = window.dilation[1] == 1 and depth == x.shape[3] and x.shape[2] * depth >= 4
    return runs and depth < 4 and window.kernel[1] * depth == 4
