"""`arm_convolve_fast_s16`: a convolution of int16 images without groups and dilation, with sums in
int32, on cores with DSP that are no Helium.

It gathers the windows of two pixels before it writes them.
"""

from __future__ import annotations

import math

from toolchain.ops import kit
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import int16
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_convolve_fast_s16"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}


def takes(op: kit.AnyOperator, core: kit.Core, window: kit.Window) -> bool:
    """Whether `arm_convolve_wrapper_s16` would choose it."""
    few = math.prod(op.input(kit.WEIGHTS).shape[1:]) < int16.FAST_TAPS
    return core.dsp and not core.mve and few and window.dilation == parts.PLAIN


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """Where the function holds the sums. Raises as `per_channel`."""
    return shared.conv_kernel(
        op,
        FUNCTION,
        scratch_bytes=2 * 2 * math.prod(op.input(kit.WEIGHTS).shape[1:]),
        extents=_extents,
        overlaps=lambda: overlaps.gathered_overlap(op, window, pixels=2),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    scratch = 4 * math.prod(shared.dims_of(touched.call, "filter")[1:])
    return shared.conv_extents(touched, scratch, element_bytes=2)
