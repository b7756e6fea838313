"""`thimble_depthwise_3x3_s8`: a depthwise convolution of 3x3 from three lines that take turns: each
image row becomes a line once.
"""

from __future__ import annotations

from collections.abc import Callable

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.lines_3x3 import (
    FOUR,
    LINES,
    line_bytes,
    lines_kernel,
    pairs_of,
)
from toolchain.ops.convolution.kernels.walks import Walk
from toolchain.ops.convolution.kernels.windows import Counts
from toolchain.ops.convolution.packing import Ending, Scaling
from toolchain.ops.window import Window

FUNCTION = "thimble_depthwise_3x3_s8"


def kernel(
    op: kit.Operator[Convolution], window: Window, endings: Callable[[], tuple[Scaling, Ending]]
) -> kit.Kernel:
    """`endings` is as in `lines_kernel`."""
    return lines_kernel(
        op,
        FUNCTION,
        window,
        Walk(window, 1),
        endings,
        scratch_bytes=scratch_bytes(op.y.shape[2], window.stride[1]),
        scratch_touched=lambda call: scratch_bytes(call["shape.output_w"], call["shape.stride_w"]),
        line_terms=_line_terms,
    )


def scratch_bytes(columns: int, stride: int) -> int:
    """Of three lines."""
    return LINES * line_bytes(columns, stride)


def _line_terms(call: kit.Call, channels: int, inside: int) -> Counts:
    odd, pairs = call["shape.pad_left"] % 2 if inside else 0, pairs_of(call)
    tops = (
        row * call["shape.stride_h"] - call["shape.pad_top"]
        for row in range(call["shape.output_h"])
    )
    seen = {top + row for top in tops for row in range(LINES)}
    lines = sum(0 <= row < call["shape.input_h"] for row in seen)
    blank = len(seen) - lines
    rest = inside - odd
    return {
        "first blank": LINES * pairs,
        "line": channels * lines,
        "line of several fours": channels * lines * (rest >= 2 * FOUR),
        "line four": channels * lines * (rest // 4),
        "line two": channels * lines * (rest % 4 // 2),
        "line one": channels * lines * (rest % 2 + odd),
        "blank line": channels * blank,
        "blank line pair": channels * blank * pairs,
    }
