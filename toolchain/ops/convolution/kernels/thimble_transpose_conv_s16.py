"""`thimble_transpose_conv_s16`: a transposed convolution of int16 images; sums in int64."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.kernels.int16 import own_kernel
from toolchain.ops.window import Window

FUNCTION = "thimble_transpose_conv_s16"


def kernel(op: kit.AnyOperator, window: Window, activation: Activation) -> kit.Kernel:
    """`window` is the forward convolution's. Raises as `per_channel`."""
    return own_kernel(op, FUNCTION, window, activation)
