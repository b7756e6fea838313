"""2-D convolution. TFLite CONV_2D, ONNX Conv.

int8 is in `conv2d_s8`, float32 in `conv2d_f32`. int16 images meet int8 filters (TFLite's 16x8
scheme), with sums in int64: `reference_integer_ops::ConvPerChannel`; its kernels are in
`kernels_s16`.
"""

from __future__ import annotations

from toolchain.ops.convolution.conv2d_f32 import F32
from toolchain.ops.convolution.conv2d_s8 import S8
from toolchain.ops.convolution.conv2d_s8 import Conv2D as Conv2D
from toolchain.ops.convolution.kernels_s16 import cmsis_nn_conv2d, own_conv2d, select_conv2d
from toolchain.ops.forms import Choice, OpSpec
from toolchain.ops.hybrid.convolutions import hybrid_conv2d
from toolchain.ops.readers.int16 import int16_form

_S16 = int16_form(
    S8,
    "int16 with constant int8 weights and int64 bias; any stride, dilation, groups",
    Choice(select_conv2d, cmsis_nn_conv2d, own_conv2d),
)

SPEC = OpSpec((S8, _S16, F32, hybrid_conv2d(F32)))
