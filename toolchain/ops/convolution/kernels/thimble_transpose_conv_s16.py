"""`thimble_transpose_conv_s16`: a transposed convolution of int16 images; sums in int64."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.kernels import int16

FUNCTION = "thimble_transpose_conv_s16"


def kernel(op: kit.AnyOperator, window: kit.Window, activation: kit.Activation) -> kit.Kernel:
    """`window` is the forward convolution's. Raises as `per_channel`."""
    return int16.own_kernel(op, FUNCTION, window, activation)
