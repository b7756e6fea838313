"""`thimble_depthwise_3x3_band_step_2_s8`: `thimble_depthwise_3x3_band_s8` of a stride of 2 along
rows.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import walks
from toolchain.ops.convolution.kernels.thimble_depthwise_3x3_band_s8 import band_kernel

FUNCTION = "thimble_depthwise_3x3_band_step_2_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.DEPTHWISE_3X3}


def kernel(op: kit.Operator[Convolution], walk: walks.Walk, endings: walks.Ended) -> kit.Kernel:
    """`endings` is as in `lines_kernel`."""
    return band_kernel(FUNCTION, op, walk, endings)
