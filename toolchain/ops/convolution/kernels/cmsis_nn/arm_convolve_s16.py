"""`arm_convolve_s16` and `arm_convolve_fast_s16`: convolutions of int16 images without groups.

The former sums in int64, and reads the whole image again for each channel. The fast one sums in
int32, has no dilation, and gathers the windows of two pixels before it writes them; it is for cores
with DSP that are no Helium.
"""

from __future__ import annotations

import math

from toolchain.ops import cmsis_structs, kit
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution, window_of
from toolchain.ops.convolution.kernels import int16
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTIONS = ANY, FAST = "arm_convolve_s16", "arm_convolve_fast_s16"


def kernel(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """The function that `arm_convolve_wrapper_s16` would choose.

    Raises NoKernelError for groups and for sums that it does not hold, and as `int16.per_channel`.
    """
    window, taps = window_of(op), math.prod(op.input(kit.WEIGHTS).shape[1:])
    if op.input(kit.INPUT).shape[3] != op.input(kit.WEIGHTS).shape[3]:
        raise kit.NoKernelError("CMSIS-NN's convolutions have no groups")
    if not int16.held(op):
        raise kit.NoKernelError(f"{ANY} does not hold the sums")
    few = taps < int16.FAST_TAPS and window.dilation == parts.PLAIN
    if not (few and core.dsp and not core.mve):
        return shared.conv_kernel(op, ANY, extents=lambda touched: _extents(touched, 0))
    return shared.conv_kernel(
        op,
        FAST,
        scratch_bytes=2 * 2 * taps,
        extents=lambda touched: _extents(touched, 4),
        overlaps=lambda: overlaps.gathered_overlap(op, window, pixels=2),
    )


def _extents(touched: kit.Touched, tap_bytes: int) -> kit.Extents:
    """`tap_bytes`: scratch for each tap of a filter."""
    scratch = tap_bytes * math.prod(cmsis_structs.dims_of(touched.call, "filter")[1:])
    return shared.conv_extents(touched, scratch, element_bytes=2)
