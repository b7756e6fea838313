"""`arm_depthwise_conv_s16` and `arm_depthwise_conv_fast_s16`: depthwise convolutions of int16
images.

The former takes any, with sums in int64. The fast one takes one filter a channel, without dilation,
with sums in int32; it gathers the window of one pixel, on Helium those of four. On Helium it reads
beyond the last channel, up to a multiple of four channels, and uses as much scratch as it is told
it has.
"""

from __future__ import annotations

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution, window_of
from toolchain.ops.convolution.kernels import int16
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTIONS = ANY, FAST = "arm_depthwise_conv_s16", "arm_depthwise_conv_fast_s16"


def kernel(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """The function that `arm_depthwise_conv_wrapper_s16` would choose, which must hold the sums.
    Raises as `int16.per_channel`.
    """
    window, channels = window_of(op), op.y.shape[3]
    taps = window.kernel[0] * window.kernel[1]
    few = taps < int16.FAST_TAPS and window.dilation == parts.PLAIN
    if not (few and channels == op.input(kit.INPUT).shape[3] and (core.dsp or core.mve)):
        return shared.conv_kernel(op, ANY, extents=_extents)
    window_bytes, pixels = 2 * channels * taps, shared.HELIUM_PIXELS if core.mve else 1
    return shared.conv_kernel(
        op,
        FAST,
        scratch_bytes=4 * window_bytes + 8 if core.mve else window_bytes,
        extents=_fast_extents,
        overlaps=lambda: overlaps.gathered_overlap(op, window, pixels, core.mve),
        spare=-channels % 4 if core.mve else 0,
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    return shared.depthwise_extents(touched, touched.call["output_dims.c"], 0, element_bytes=2)


def _fast_extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    filters, channels = cmsis_structs.dims_of(call, "filter"), call["output_dims.c"]
    window = 2 * channels * filters[1] * filters[2]
    helium = call["ctx.size"] > window
    read = kit.round_up(channels, 4) if helium else channels
    scratch = 4 * window + 8 if helium else window
    return shared.depthwise_extents(touched, read, scratch, element_bytes=2)
