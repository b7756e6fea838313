"""`thimble_convolve_s4`: `thimble_convolve_s8` with weights of four bits, by four channels and two
windows.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import blocks, thimble_convolve_s8

FUNCTION = "thimble_convolve_s4"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}


def kernel(op: kit.Operator[Convolution], window: kit.Window, filters: packing.Int8) -> kit.Kernel:
    """`filters` are [channels, height, width, depth], and fit four bits."""
    return thimble_convolve_s8.of_width(FUNCTION, blocks.FOUR_BITS, op, window, filters)
