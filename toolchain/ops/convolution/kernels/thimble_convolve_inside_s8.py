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
CODE_BYTES = dict.fromkeys(FUNCTIONS.values(), kit.CodeBytes.CONVOLUTION)


def kernel(op: kit.Operator[Convolution], window: kit.Window, width: blocks.Width) -> kit.Kernel:
    """The kernel of one image, without groups and padding."""
    x, y = op.x.shape, op.y.shape
    row_bytes = window.kernel[1] * x[3]

    def form(at_once: int) -> blocks.Form:
        def calls(input_line: int, output_line: int) -> tuple[kit.Call, ...]:
            line = input_line or x[2] * x[3]
            shape: dict[str, kit.Argument] = {
                "output_h": y[1],
                "output_w": y[2],
                "output_c": y[3],
                "kernel_h": window.kernel[0],
                "row_words": row_bytes // 4,
                "row_step": window.dilation[0] * line,
                "pixel_step": window.stride[1] * x[3],
                "line_step": window.stride[0] * line,
                "output_step": output_line or y[2] * y[3],
                "at_once": at_once,
            }
            struct = kit.Struct("thimble_inside_shape", shape)
            return (parts.own_call(op, FUNCTIONS[width.bits], struct),)

        return blocks.Form(calls, 2 * at_once * window.kernel[0] * row_bytes)

    return blocks.blocked_kernel(
        op,
        FUNCTIONS,
        window,
        width,
        form=form,
        gathered=lambda: gathered_windows(op, window, x[3]),
        extents=lambda touched: _extents(touched, width),
    )


def _extents(touched: kit.Touched, width: blocks.Width) -> kit.Extents:
    call = touched.call
    shape = {
        name: call[f"shape.{name}"]
        for name in ("output_h", "output_w", "output_c", "kernel_h", "row_words")
    }
    steps = {name: call[f"shape.{name}"] for name in ("row_step", "pixel_step", "line_step")}
    run = (shape["output_w"] - 1) * steps["pixel_step"] + 4 * shape["row_words"]
    down = (shape["output_h"] - 1) * steps["line_step"] + (shape["kernel_h"] - 1) * steps[
        "row_step"
    ]
    line = touched.input_line() or math.gcd(down, steps["row_step"], steps["line_step"])
    taps = 4 * shape["kernel_h"] * shape["row_words"]
    one = (1, shape["output_h"], shape["output_w"], shape["output_c"])
    return kit.Extents(
        {0: kit.Extent(0, run, line, down // line + 1)},
        {0: shapes.image(one, line=touched.output_line)},
        {"parameters": width.parameter_bytes(shape["output_c"], taps)},
        2 * call["shape.at_once"] * taps,
        largest=shape["output_h"] * steps["line_step"] + shape["kernel_h"] * steps["row_step"],
    )
