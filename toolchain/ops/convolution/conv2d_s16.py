"""2-D convolution of int16 images with int8 filters. TFLite CONV_2D, 16x8.

Arithmetic: LiteRT `reference_integer_ops::ConvPerChannel` with int64 sums.
"""

from __future__ import annotations

from dataclasses import replace

from toolchain.ops.convolution.conv2d_s8 import S8
from toolchain.ops.convolution.wide_kernels import select_conv2d
from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.spec import no_reductions

S16 = replace(
    S8,
    select=select_conv2d,
    sample=wide_sample(S8.sample),
    onnx=None,
    reductions=no_reductions,
    dtypes=WIDE,
    limits="int16 with constant int8 weights and int64 bias; any stride, dilation, groups",
)
