"""`arm_depthwise_conv_3x3_s8`: a depthwise convolution of one image by windows of 3x3, by channels
four at a time.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.cmsis_nn.shared import (
    depthwise_kernel,
    extents_of_lean_depthwise,
)
from toolchain.ops.convolution.kernels.windows import seen_taps, walked
from toolchain.ops.weighted import INPUT
from toolchain.ops.window import Window

FUNCTION = "arm_depthwise_conv_3x3_s8"


def takes_window(op: kit.AnyOperator, window: Window) -> bool:
    """Whether it applies: it reads the middle column of every window."""
    x, y, pad = op.input(INPUT), op.y, window.padding
    middle = (y.shape[2] - 1) * window.stride[1] - pad.left + 1
    return window.kernel == (3, 3) and max(pad.top, pad.left) <= 1 and middle < x.shape[2]


def kernel(op: kit.Operator[Convolution], window: Window) -> kit.Kernel:
    """Of one filter a channel, without dilation. Raises as `channel_factors`."""
    return depthwise_kernel(
        op,
        FUNCTION,
        extents=extents_of_lean_depthwise,
        terms=lambda: four_channel_terms(op, window),
    )


def four_channel_terms(op: kit.AnyOperator, window: Window) -> kit.Terms:
    """Of loops over the taps in the image, for four channels and then for each that is left."""
    batches, out_h, out_w, channels = op.y.shape
    rows, columns = walked(op, window)
    pixels, seen = batches * out_h * out_w, seen_taps(op, window)
    seen_rows, (fours, rest) = batches * rows.taps * columns.windows, divmod(channels, 4)
    return {
        "call": 1.0,
        "output row": batches * out_h,
        "pixel": pixels,
        "four channels": pixels * fours,
        "four channels row": seen_rows * fours,
        "four channels tap": seen * fours,
        "channel": pixels * rest,
        "channel row": seen_rows * rest,
        "channel tap": seen * rest,
    }
