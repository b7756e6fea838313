"""`thimble_convolve_inside_s8`, and `thimble_convolve_inside_s4` of weights of four bits: windows
that lie inside the image, and whose rows are whole words.

No window is checked against the image.
"""

from __future__ import annotations

import math
from types import MappingProxyType

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import blocks, shapes
from toolchain.ops.convolution.kernels.thimble_convolve_s8 import gathered_windows

FUNCTIONS = MappingProxyType({8: "thimble_convolve_inside_s8", 4: "thimble_convolve_inside_s4"})


def kernel(op: kit.Operator[Convolution], window: kit.Window, width: blocks.Width) -> kit.Kernel:
    """The kernel of one image, without groups and padding."""
    x, y = op.x.shape, op.y.shape
    row_bytes = window.kernel[1] * x[3]

    def call(at_once: int, lines: tuple[int, int]) -> kit.Call:
        line = lines[0] or x[2] * x[3]
        shape: dict[str, kit.Argument] = {
            **kit.sized("output", y[1:]),
            "kernel_h": window.kernel[0],
            "row_words": row_bytes // 4,
            "row_step": window.dilation[0] * line,
            "pixel_step": window.stride[1] * x[3],
            "line_step": window.stride[0] * line,
            "output_step": lines[1] or y[2] * y[3],
            "at_once": at_once,
        }
        return parts.own_call(op, FUNCTIONS[width.bits], kit.Struct("thimble_inside_shape", shape))

    return blocks.blocked_kernel(
        op,
        FUNCTIONS,
        window,
        width,
        calls=call,
        scratch_bytes=lambda at_once: 2 * at_once * window.kernel[0] * row_bytes,
        gathered=lambda: gathered_windows(op, window, x[3]),
        extents=lambda touched: _extents(touched, width),
    )


def _extents(touched: kit.Touched, width: blocks.Width) -> kit.Extents:
    call = touched.call
    out_h, out_w, channels = (call[f"shape.output_{axis}"] for axis in "hwc")
    kernel_h, row_words = call["shape.kernel_h"], call["shape.row_words"]
    row, pixel, below = (call[f"shape.{name}_step"] for name in ("row", "pixel", "line"))
    run = (out_w - 1) * pixel + 4 * row_words
    down = (out_h - 1) * below + (kernel_h - 1) * row
    line, taps = touched.input_line() or math.gcd(down, row, below), 4 * kernel_h * row_words
    return kit.Extents(
        {0: kit.Extent(0, run, line, down // line + 1)},
        {0: shapes.image((1, out_h, out_w, channels), line=touched.output_line)},
        {"parameters": width.parameter_bytes(channels, taps)},
        2 * call["shape.at_once"] * taps,
        largest=out_h * below + kernel_h * row,
    )
