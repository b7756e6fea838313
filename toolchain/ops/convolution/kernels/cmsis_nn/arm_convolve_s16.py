"""`arm_convolve_s16`: a convolution of int16 images without groups, with sums in int64.

It reads the whole image again for each channel.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_convolve_s16"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}


def kernel(op: kit.Operator[Convolution]) -> kit.Kernel:
    """Any window, where the function holds the sums. Raises as `int16.per_channel`."""
    return shared.conv_kernel(op, FUNCTION, extents=_extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    return shared.conv_extents(touched, 0, element_bytes=2)
