"""`arm_depthwise_conv_s8_opt`: a depthwise convolution of one image, whose windows are gathered: on
Helium four pixels of blocks of channels at a time, in vectors of four channels.
"""

from __future__ import annotations

from toolchain.ops import cmsis_structs, kit, walks
from toolchain.ops.convolution import overlaps
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import windows
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_depthwise_conv_s8_opt"
CHANNELS_AT_ONCE = 124
"""CH_IN_BLOCK_MVE of arm_nnsupportfunctions.h: channels of a block."""


def takes_window(op: kit.AnyOperator, window: kit.Window) -> bool:
    """Whether no window lies above or below the image, for which it clears more scratch than it
    has, on cores with DSP."""
    x, y, top = op.input(kit.INPUT), op.y, window.padding.top
    last = (y.shape[1] - 1) * window.stride[0] - top
    return top <= window.kernel[0] and last <= x.shape[1]


def kernel(op: kit.Operator[Convolution], core: kit.Core, window: kit.Window) -> kit.Kernel:
    """The kernel of one filter a channel, without dilation. On Helium it reads four channels at a
    time, beyond the last one too, and steps from a null bias: its arrays are padded. Raises as
    `channel_factors`.
    """
    channels = op.y.shape[3]
    elements = channels * window.kernel[0] * window.kernel[1]
    spare, terms = (-channels % 4, _helium_terms) if core.mve else (0, _terms)
    return shared.conv_kernel(
        op,
        FUNCTION,
        scratch_bytes=_window_bytes(elements, channels, core),
        extents=lambda touched: _extents(touched, core),
        overlaps=lambda: _helium_overlaps(op, window) if core.mve else (),
        terms=lambda: terms(op, window),
        spare=spare,
    )


def _window_bytes(elements: int, channels: int, core: kit.Core) -> int:
    """As `arm_depthwise_conv_wrapper_s8_get_buffer_size` gives it for windows of so many elements,
    on cores with DSP.
    """
    return 4 * CHANNELS_AT_ONCE * (elements // channels) if core.mve else 2 * elements


def _extents(touched: kit.Touched, core: kit.Core) -> kit.Extents:
    y, kernel = (cmsis_structs.dims_of(touched.call, name) for name in ("output", "filter"))
    channels = kit.round_up(y[3], 4) if core.mve else y[3]
    elements = kernel[1] * kernel[2] * y[3]
    return shared.depthwise_extents(touched, channels, _window_bytes(elements, y[3], core))


def _helium_overlaps(op: kit.AnyOperator, window: kit.Window) -> tuple[kit.SafeOverlap, ...]:
    x, y = op.input(kit.INPUT).shape, op.y.shape
    firsts, ends = (
        walks.first_seen(op, window),
        walks.run_ends(y[1] * y[2], 1, shared.HELIUM_PIXELS),
    )
    lead = overlaps.gathered_lead(firsts, ends, x[3], x[3])
    if x[3] <= CHANNELS_AT_ONCE:
        return (kit.SafeOverlap(kit.INPUT, 0, lead),)
    return overlaps.in_whole_pixels(lead, x[3])


def _helium_terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    batches, out_h, out_w, channels = op.y.shape
    pixels, seen = batches * out_h * out_w, windows.seen_taps(op, window)
    taps = window.kernel[0] * window.kernel[1]
    each = [
        min(CHANNELS_AT_ONCE, channels - first) for first in range(0, channels, CHANNELS_AT_ONCE)
    ]
    blocks = len(each)
    fours, sixteens = (sum(-(-c // width) for c in each) for width in (4, 16))
    quads, rest = batches * (out_h * out_w // 4), batches * (out_h * out_w % 4)
    return {
        "call": 1.0,
        "block of channels": blocks,
        "pixel": pixels * blocks,
        "tap": pixels * taps * blocks,
        "tap of sixteen channels": seen * sixteens,
        "blank tap": (pixels * taps - seen) * blocks,
        "blank tap of sixteen channels": (pixels * taps - seen) * sixteens,
        "four pixels": quads * blocks,
        "four channels of four pixels": quads * fours,
        "four channels of a tap of four pixels": quads * fours * taps,
        "four channels of a last pixel": rest * fours,
        "four channels of a tap of a last pixel": rest * fours * taps,
    }


def _terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    batches, out_h, out_w, channels = op.y.shape
    pixels, taps = batches * out_h * out_w, window.kernel[0] * window.kernel[1]
    seen, (fours, rest) = windows.seen_taps(op, window), divmod(channels, 4)
    return {
        "call": 1.0,
        "output row": batches * out_h,
        "pixel": pixels,
        "tap": pixels * taps,
        "tap seen": seen,
        "tap word seen": seen * fours,
        "tap byte seen": seen * rest,
        "four channels": pixels * fours,
        "four channels of two taps": pixels * fours * (taps // 2),
        "four channels of the last tap": pixels * fours * (taps % 2),
        "channel": pixels * rest,
        "channel tap": pixels * rest * taps,
    }
