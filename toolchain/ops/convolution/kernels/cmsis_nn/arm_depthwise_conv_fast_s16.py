"""`arm_depthwise_conv_fast_s16`: a depthwise convolution of int16 images by one filter a channel,
without dilation, with sums in int32.

It gathers the window of one pixel, on Helium those of four. On Helium it reads beyond the last
channel, up to a multiple of four channels, and uses as much scratch as it is told it has.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import int16
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_depthwise_conv_fast_s16"
CODE_BYTES = {FUNCTION: kit.CodeBytes.DEPTHWISE}


def takes(op: kit.AnyOperator, core: kit.Core, window: kit.Window) -> bool:
    """Whether `arm_depthwise_conv_wrapper_s16` would choose it."""
    single = op.y.shape[3] == op.input(kit.INPUT).shape[3]
    few = window.kernel[0] * window.kernel[1] < int16.FAST_TAPS
    return (core.dsp or core.mve) and single and few and window.dilation == parts.PLAIN


def kernel(op: kit.Operator[Convolution], core: kit.Core, window: kit.Window) -> kit.Kernel:
    """Where the function holds the sums. Raises as `per_channel`."""
    channels = op.y.shape[3]
    window_bytes = 2 * channels * window.kernel[0] * window.kernel[1]
    pixels = shared.HELIUM_PIXELS if core.mve else 1
    return shared.depthwise_kernel(
        op,
        FUNCTION,
        scratch_bytes=4 * window_bytes + 8 if core.mve else window_bytes,
        extents=_extents,
        overlaps=lambda: overlaps.gathered_overlap(op, window, pixels, core.mve),
        spare=-channels % 4 if core.mve else 0,
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    filters, channels = shared.dims_of(call, "filter"), call["output_dims.c"]
    window = 2 * channels * filters[1] * filters[2]
    helium = call["ctx.size"] > window
    read = kit.round_up(channels, 4) if helium else channels
    scratch = 4 * window + 8 if helium else window
    return shared.depthwise_extents(touched, read, scratch, element_bytes=2)
