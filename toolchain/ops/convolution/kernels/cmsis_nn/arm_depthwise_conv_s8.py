"""`arm_depthwise_conv_s8`: any depthwise convolution, channel by channel; four at a time of one
image without dilation that has a multiple of four filters a channel.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import windows
from toolchain.ops.convolution.kernels.cmsis_nn import shared
from toolchain.ops.convolution.kernels.cmsis_nn.arm_depthwise_conv_3x3_s8 import (
    four_channel_terms,
)

FUNCTION = "arm_depthwise_conv_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.DEPTHWISE}


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """The kernel of any window. Raises as `channel_factors`."""
    return shared.conv_kernel(
        op,
        FUNCTION,
        extents=shared.extents_of_lean_depthwise,
        terms=lambda: _terms(op, window),
    )


def _terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    batches, out_h, out_w, channels = op.y.shape
    multiplicity = channels // op.input(kit.INPUT).shape[3]
    if multiplicity % 4 == 0 and batches == 1 and window.dilation == (1, 1):
        return four_channel_terms(op, window)
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
