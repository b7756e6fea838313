"""Depthwise convolution of int16 images with int8 filters. TFLite DEPTHWISE_CONV_2D, 16x8.

Arithmetic: LiteRT `reference_integer_ops::DepthwiseConvPerChannel` with int64 sums.
"""

from __future__ import annotations

from dataclasses import replace

from toolchain.ops.convolution.depthwise_conv2d_s8 import S8
from toolchain.ops.convolution.wide_kernels import select_depthwise
from toolchain.ops.readers.wide import WIDE, wide_sample

S16 = replace(
    S8,
    select=select_depthwise,
    sample=wide_sample(S8.sample),
    onnx=None,
    dtypes=WIDE,
    limits="int16 with constant int8 weights and int64 bias; any stride, dilation, multiplier",
)
