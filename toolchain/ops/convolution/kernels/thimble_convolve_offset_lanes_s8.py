"""`thimble_convolve_offset_lanes_s8`: `thimble_convolve_lanes_s8` of weights with a zero point,
which also sums the windows: it keeps a vector before each.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.thimble_convolve_lanes_s8 import lanes_kernel

FUNCTION = "thimble_convolve_offset_lanes_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.LANES}


def kernel(op: kit.Operator[Convolution], window: kit.Window, filters: packing.Int8) -> kit.Kernel:
    """`filters` are [channels, height, width, depth]."""
    return lanes_kernel(FUNCTION, op, window, filters, before=packing.VECTOR_BYTES)
