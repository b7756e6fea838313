"""`thimble_depthwise_conv_f32`: a depthwise convolution of float32 images."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.kernels.float32 import float_kernel

FUNCTION = "thimble_depthwise_conv_f32"
CODE_BYTES = {FUNCTION: kit.CodeBytes.DEPTHWISE}


def kernel(window: kit.Struct) -> kit.Kernel:
    """The kernel of a window as `window_f32` makes it."""
    return float_kernel(FUNCTION, window, depthwise=True)
