"""`arm_convolve_fast_s16`: a convolution of int16 images without groups and dilation, with sums in
int32, on cores with DSP that are no Helium.

It gathers the windows of two pixels before it writes them.
"""

from __future__ import annotations

import math

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernel_parts import PLAIN
from toolchain.ops.convolution.kernels.cmsis_nn.arm_convolve_s16 import (
    int16_extents,
    int16_kernel,
)
from toolchain.ops.convolution.kernels.cmsis_nn.shared import dims_of
from toolchain.ops.convolution.kernels.int16 import FAST_TAPS
from toolchain.ops.convolution.overlaps import gathered_overlap
from toolchain.ops.weighted import WEIGHTS
from toolchain.ops.window import Window

FUNCTION = "arm_convolve_fast_s16"


def takes(op: kit.AnyOperator, core: kit.Core, window: Window) -> bool:
    """Whether `arm_convolve_wrapper_s16` would choose it."""
    few = math.prod(op.input(WEIGHTS).shape[1:]) < FAST_TAPS
    return core.dsp and not core.mve and few and window.dilation == PLAIN


def kernel(op: kit.Operator[Convolution], window: Window) -> kit.Kernel:
    """Where the function holds the sums. Raises as `per_channel`."""
    return int16_kernel(
        op,
        FUNCTION,
        window,
        scratch_bytes=2 * 2 * math.prod(op.input(WEIGHTS).shape[1:]),
        extents=_extents,
        overlaps=lambda: gathered_overlap(op, window, pixels=2),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    return int16_extents(touched, 4 * math.prod(dims_of(touched.call, "filter")[1:]))
