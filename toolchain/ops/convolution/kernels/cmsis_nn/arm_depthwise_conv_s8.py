"""`arm_depthwise_conv_s8`: any depthwise convolution, channel by channel; four at a time of one
image without dilation that has a multiple of four filters a channel. `arm_depthwise_conv_3x3_s8`:
of one image by windows of 3x3, with one filter a channel and no dilation, by channels four at a
time.
"""

from __future__ import annotations

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import windows
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTIONS = ANY, SMALL = "arm_depthwise_conv_s8", "arm_depthwise_conv_3x3_s8"


def takes_3x3(op: kit.AnyOperator, window: kit.Window) -> bool:
    """Whether SMALL applies: it reads the middle column of every window."""
    x, y, pad = op.input(kit.INPUT), op.y, window.padding
    middle = (y.shape[2] - 1) * window.stride[1] - pad.left + 1
    return window.kernel == (3, 3) and max(pad.top, pad.left) <= 1 and middle < x.shape[2]


def kernel(op: kit.Operator[Convolution], window: kit.Window, function: str = ANY) -> kit.Kernel:
    """The kernel of any window, or of 3x3 by SMALL. Raises as `channel_factors`."""
    terms = _four_channel_terms if function == SMALL else _terms
    return shared.conv_kernel(op, function, extents=_extents, terms=lambda: terms(op, window))


def _extents(touched: kit.Touched) -> kit.Extents:
    """It reads no channels beyond the last, and takes no scratch."""
    channels = cmsis_structs.dims_of(touched.call, "output")[3]
    return shared.depthwise_extents(touched, channels, 0)


def _four_channel_terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
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


def _terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    batches, out_h, out_w, channels = op.y.shape
    multiplicity = channels // op.input(kit.INPUT).shape[3]
    if multiplicity % 4 == 0 and batches == 1 and window.dilation == (1, 1):
        return _four_channel_terms(op, window)
    rows, columns = kit.walked(op.x.shape, op.y.shape, window)
    pixels, dilated = batches * out_h * out_w, sum(step > 1 for step in window.dilation)
    return {
        "call": 1.0,
        "output row": batches * out_h,
        "pixel": pixels,
        "any channel": pixels * channels,
        "any channel dilated": pixels * channels * dilated,
        "any channel row": batches * rows.taps * columns.windows * channels,
        "any channel tap": windows.seen_taps(op, window) * channels,
    }
