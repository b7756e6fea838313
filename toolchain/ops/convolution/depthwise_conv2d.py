"""Depthwise convolution: each channel has filters of its own. TFLite DEPTHWISE_CONV_2D, ONNX Conv.

int8 is in `depthwise_conv2d_s8`, float32 in `depthwise_conv2d_f32`. int16 images meet int8 filters
(TFLite's 16x8 scheme), with sums in int64: `reference_integer_ops::DepthwiseConvPerChannel`; its
kernels are in `kernels_s16`.
"""

from __future__ import annotations

from toolchain.ops.convolution.depthwise_conv2d_f32 import F32
from toolchain.ops.convolution.depthwise_conv2d_s8 import S8
from toolchain.ops.convolution.depthwise_conv2d_s8 import DepthwiseConv2D as DepthwiseConv2D
from toolchain.ops.convolution.kernels_s16 import select_depthwise
from toolchain.ops.forms import OpSpec
from toolchain.ops.hybrid.convolutions import hybrid_depthwise
from toolchain.ops.readers.int16 import int16_form

_S16 = int16_form(
    S8,
    "int16 with constant int8 weights and int64 bias; any stride, dilation, multiplier",
    select_depthwise,
)

SPEC = OpSpec((S8, _S16, F32, hybrid_depthwise(F32)))
