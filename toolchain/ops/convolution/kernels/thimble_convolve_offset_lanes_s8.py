"""`thimble_convolve_offset_lanes_s8`: `thimble_convolve_lanes_s8` of weights with a zero point,
which also sums the windows: it keeps a vector before each.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.thimble_convolve_lanes_s8 import lanes_kernel
from toolchain.ops.convolution.packing import VECTOR_BYTES, Int8
from toolchain.ops.window import Window

FUNCTION = "thimble_convolve_offset_lanes_s8"


def kernel(op: kit.Operator[Convolution], window: Window, filters: Int8) -> kit.Kernel:
    """`filters` are [channels, height, width, depth]."""
    return lanes_kernel(FUNCTION, op, window, filters, before=VECTOR_BYTES)
