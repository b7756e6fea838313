"""`thimble_transpose_conv_s16`: a transposed convolution of int16 images; sums in int64."""

from __future__ import annotations

from typing import Any

from toolchain.ops import kit
from toolchain.ops.convolution.kernels import int16

FUNCTION = "thimble_transpose_conv_s16"


def kernel(op: kit.Operator[Any], window: kit.Window) -> kit.Kernel:
    """`window` is the forward convolution's. Raises as `per_channel`."""
    return int16.own_kernel(op, FUNCTION, window)
