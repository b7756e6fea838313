"""`thimble_convolve_f32`: a convolution in float32, with groups; a fully connected layer, too."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.kernels.float32 import float_kernel

FUNCTION = "thimble_convolve_f32"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}


def kernel(window: kit.Struct, note: str = "") -> kit.Kernel:
    """The kernel of a window as `window_f32` makes it. `note` is for the reader of the C."""
    return float_kernel(FUNCTION, window, note=note)
