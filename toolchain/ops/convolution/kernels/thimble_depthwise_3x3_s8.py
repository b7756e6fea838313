"""`thimble_depthwise_3x3_s8`: a depthwise convolution of 3x3 from three lines that take turns: each
image row becomes a line once.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import lines_3x3, walks, windows

FUNCTION = "thimble_depthwise_3x3_s8"


def kernel(op: kit.Operator[Convolution], window: kit.Window, endings: walks.Ended) -> kit.Kernel:
    """`endings` is as in `lines_kernel`."""
    lines = lines_3x3.Lines(
        scratch_bytes(op.y.shape[2], window.stride[1]),
        lambda call: scratch_bytes(call["shape.output_w"], call["shape.stride_w"]),
        _line_terms,
    )
    return lines_3x3.lines_kernel(op, FUNCTION, walks.Walk(window, 1), endings, lines)


def scratch_bytes(columns: int, stride: int) -> int:
    """Scratch of three lines."""
    return lines_3x3.LINES * lines_3x3.line_bytes(columns, stride)


def _line_terms(call: kit.Call, channels: int, inside: int) -> windows.Counts:
    odd, pairs = call["shape.pad_left"] % 2 if inside else 0, lines_3x3.pairs_of(call)
    tops = (
        row * call["shape.stride_h"] - call["shape.pad_top"]
        for row in range(call["shape.output_h"])
    )
    seen = {top + row for top in tops for row in range(lines_3x3.LINES)}
    lines = sum(0 <= row < call["shape.input_h"] for row in seen)
    blank = len(seen) - lines
    rest = inside - odd
    return {
        "first blank": lines_3x3.LINES * pairs,
        "line": channels * lines,
        "line of several fours": channels * lines * (rest >= 2 * lines_3x3.FOUR),
        "line four": channels * lines * (rest // 4),
        "line two": channels * lines * (rest % 4 // 2),
        "line one": channels * lines * (rest % 2 + odd),
        "blank line": channels * blank,
        "blank line pair": channels * blank * pairs,
    }
