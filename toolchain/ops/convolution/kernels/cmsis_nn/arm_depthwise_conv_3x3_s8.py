"""`arm_depthwise_conv_3x3_s8`: a depthwise convolution of one image by windows of 3x3, by channels
four at a time.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import windows
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_depthwise_conv_3x3_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.DEPTHWISE}


def takes_window(op: kit.AnyOperator, window: kit.Window) -> bool:
    """Whether it applies: it reads the middle column of every window."""
    x, y, pad = op.input(kit.INPUT), op.y, window.padding
    middle = (y.shape[2] - 1) * window.stride[1] - pad.left + 1
    return window.kernel == (3, 3) and max(pad.top, pad.left) <= 1 and middle < x.shape[2]


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """The kernel of one filter a channel, without dilation. Raises as `channel_factors`."""
    return shared.conv_kernel(
        op,
        FUNCTION,
        extents=shared.extents_of_lean_depthwise,
        terms=lambda: four_channel_terms(op, window),
    )


def four_channel_terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    """Terms of loops over the taps in the image: four channels at a time, then one by one."""
    batches, out_h, out_w, channels = op.y.shape
    rows, columns = kit.walked(op.x.shape, op.y.shape, window)
    pixels, seen = batches * out_h * out_w, windows.seen_taps(op, window)
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
