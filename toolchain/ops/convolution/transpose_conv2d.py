"""Transposed convolution. TFLite TRANSPOSE_CONV, ONNX ConvTranspose.

int8 is in `transpose_conv2d_s8`, float32 in `transpose_conv2d_f32`. int16 images meet int8 filters
(TFLite's 16x8 scheme), with sums in int64: `reference_integer_ops::TransposeConv`.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.kernels import thimble_transpose_conv_s16
from toolchain.ops.convolution.transpose_conv2d_f32 import F32
from toolchain.ops.convolution.transpose_conv2d_s8 import S8, forward_window
from toolchain.ops.convolution.transpose_conv2d_s8 import TransposeConv2D as TransposeConv2D
from toolchain.ops.readers.int16 import int16_form


def _select_s16(op: kit.Operator[TransposeConv2D], core: kit.Core) -> kit.Kernel:
    return thimble_transpose_conv_s16.kernel(op, forward_window(op))


_S16 = int16_form(
    S8,
    "int16 with constant int8 weights and int64 bias; any stride and output size",
    _select_s16,
)

SPEC = kit.OpSpec((S8, _S16, F32))
