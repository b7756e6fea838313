"""Transposed convolution. TFLite TRANSPOSE_CONV, ONNX ConvTranspose.

int8 is in `transpose_conv2d_s8`; float32 follows `reference_ops`. int16 images meet int8 filters
(TFLite's 16x8 scheme), with sums in int64: `reference_integer_ops::TransposeConv`.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.kernels import thimble_convolve_f32, thimble_convolve_s16
from toolchain.ops.convolution.sums import float_reference
from toolchain.ops.convolution.transpose_conv2d_s8 import S8
from toolchain.ops.convolution.transpose_conv2d_s8 import TransposeConv2D as TransposeConv2D
from toolchain.ops.hybrid.transposed import hybrid_transposed
from toolchain.ops.readers.float32 import float32_form
from toolchain.ops.readers.int16 import int16_form

_S16 = int16_form(
    S8,
    "int16 with constant int8 weights and int64 bias; any stride and output size",
    thimble_convolve_s16.kernel,
)
_F32 = float32_form(
    S8,
    "float32, constant weights; any stride and output size",
    float_reference,
    thimble_convolve_f32.kernel,
)

SPEC = kit.OpSpec((S8, _S16, _F32, hybrid_transposed(_F32)))
