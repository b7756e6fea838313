"""`arm_depthwise_conv_s16`: any depthwise convolution of int16 images, with sums in int64."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_depthwise_conv_s16"
CODE_BYTES = {FUNCTION: kit.CodeBytes.DEPTHWISE}


def kernel(op: kit.Operator[Convolution]) -> kit.Kernel:
    """Any window, where the function holds the sums. Raises as `int16.per_channel`."""
    return shared.depthwise_kernel(op, FUNCTION, extents=_extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    return shared.depthwise_extents(touched, touched.call["output_dims.c"], 0, element_bytes=2)
