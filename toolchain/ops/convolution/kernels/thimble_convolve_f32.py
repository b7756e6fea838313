"""`thimble_convolve_f32`: a convolution in float32, with groups; a fully connected layer, too."""

from __future__ import annotations

from toolchain.ops.convolution.kernels.float32 import float_kernel
from toolchain.ops.kernel import Kernel, Struct

FUNCTION = "thimble_convolve_f32"


def kernel(window: Struct, note: str = "") -> Kernel:
    """Of a window as `window_f32` makes it. `note` is for the reader of the C."""
    return float_kernel(FUNCTION, window, note=note)
