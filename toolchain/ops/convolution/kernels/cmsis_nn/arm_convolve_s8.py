"""`arm_convolve_s8`: any window without groups, whose pixels are copied to columns: of four windows
on Helium, of two in int16 elsewhere.
"""

from __future__ import annotations

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.convolution import overlaps
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import windows
from toolchain.ops.convolution.kernels.cmsis_nn import shared
from toolchain.ops.convolution.kernels.cmsis_nn.products import helium_terms

FUNCTION = "arm_convolve_s8"


def kernel(op: kit.Operator[Convolution], core: kit.Core, window: kit.Window) -> kit.Kernel:
    """The kernel of any window. Raises as `channel_factors`."""
    taps = window.kernel[0] * window.kernel[1] * op.input(kit.INPUT).shape[3]
    terms = _helium_terms if core.mve else _terms
    return shared.conv_kernel(
        op,
        FUNCTION,
        scratch_bytes=_column_bytes(taps, core),
        extents=lambda touched: _extents(touched, core),
        overlaps=lambda: (
            overlaps.gathered_overlap(op, window, shared.HELIUM_PIXELS) if core.mve else ()
        ),
        terms=lambda: terms(op, window),
    )


def _column_bytes(taps: int, core: kit.Core) -> int:
    """As `arm_convolve_wrapper_s8_get_buffer_size` gives it."""
    return 4 * kit.round_up(taps, 8) if core.mve else 4 * kit.round_up(taps, 4)


def _extents(touched: kit.Touched, core: kit.Core) -> kit.Extents:
    x, kernel = (cmsis_structs.dims_of(touched.call, name) for name in ("input", "filter"))
    scratch = _column_bytes(kernel[1] * kernel[2] * x[3], core)
    return shared.conv_extents(touched, scratch)


def _helium_terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    batches, out_h, out_w, _ = op.y.shape
    pixels, seen = batches * out_h * out_w, windows.seen_taps(op, window)
    return helium_terms(op, window, 1) | {
        "pixel": pixels,
        "output row": batches * out_h,
        "tap seen": seen,
        "tap vector seen": seen * -(-op.input(kit.INPUT).shape[3] // 16),
        "tap blank": pixels * window.kernel[0] * window.kernel[1] - seen,
    }


def _terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    batches, out_h, out_w, channels = op.y.shape
    taps, depth = window.kernel[0] * window.kernel[1], op.input(kit.INPUT).shape[3]
    seen, pixels = windows.seen_taps(op, window), batches * out_h * out_w
    twos, lone = batches * (out_h * out_w // 2), batches * (out_h * out_w % 2)
    fours, rest = divmod(taps * depth, 4)
    blocks = twos * (channels // 2)
    return {
        "call": 1.0,
        "output row": batches * out_h,
        "pixel": pixels,
        "tap seen": seen,
        "tap word seen": seen * (depth // 4),
        "tap byte seen": seen * (depth % 4),
        "tap blank": pixels * taps - seen,
        "column word": pixels * fours,
        "column rest": pixels * rest,
        "block": blocks,
        "block word": blocks * fours,
        "block rest": blocks * rest,
        "last channel": twos * (channels % 2),
        "last channel word": twos * (channels % 2) * fours,
        "last channel rest": twos * (channels % 2) * rest,
        "last pixel output": lone * channels,
        "last pixel word": lone * channels * fours,
        "last pixel rest": lone * channels * rest,
    }
