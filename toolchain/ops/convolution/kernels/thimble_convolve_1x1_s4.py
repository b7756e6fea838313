"""`thimble_convolve_1x1_s4`: `thimble_convolve_1x1_s8` with weights of four bits, by four channels
and two pixels.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import blocks, thimble_convolve_1x1_s8

FUNCTION = "thimble_convolve_1x1_s4"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """The kernel of an operator without groups, strides and padding."""
    return thimble_convolve_1x1_s8.of_width(FUNCTION, blocks.FOUR_BITS, op, window)
