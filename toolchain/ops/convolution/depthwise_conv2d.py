"""Depthwise convolution: each channel has filters of its own. TFLite DEPTHWISE_CONV_2D, ONNX Conv.

int8 is in `depthwise_conv2d_s8`; float32 follows `reference_ops`. int16 images meet int8 filters
(TFLite's 16x8 scheme), with sums in int64: `reference_integer_ops::DepthwiseConvPerChannel`.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.depthwise_conv2d_s8 import S8
from toolchain.ops.convolution.depthwise_conv2d_s8 import DepthwiseConv2D as DepthwiseConv2D
from toolchain.ops.convolution.kernels import int16, thimble_convolve_f32, thimble_convolve_s16
from toolchain.ops.convolution.kernels.cmsis_nn import arm_depthwise_conv_s16
from toolchain.ops.convolution.sums import float_reference
from toolchain.ops.hybrid.convolutions import hybrid_depthwise
from toolchain.ops.readers.float32 import float32_form
from toolchain.ops.readers.int16 import int16_form


def _select_s16(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """CMSIS-NN's function; for sums that it does not hold, Thimble's own."""
    if int16.held(op):
        return arm_depthwise_conv_s16.kernel(op, core)
    return thimble_convolve_s16.kernel(op, core)


_S16 = int16_form(
    S8,
    "int16 with constant int8 weights and int64 bias; any stride, dilation, multiplier",
    _select_s16,
)
_F32 = float32_form(
    S8,
    "float32, constant weights; any stride, dilation, multiplier",
    float_reference,
    thimble_convolve_f32.kernel,
)

SPEC = kit.OpSpec((S8, _S16, _F32, hybrid_depthwise(_F32)))
