"""Convolution: int8 in `conv2d_s8`, int16 in `_s16`, float32 in `_f32`."""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.convolution.conv2d_f32 import F32
from toolchain.ops.convolution.conv2d_s8 import S8
from toolchain.ops.convolution.conv2d_s8 import Conv2D as Conv2D
from toolchain.ops.convolution.conv2d_s16 import S16
from toolchain.ops.spec import by_type

SPEC = by_type({DType.INT8: S8, DType.INT16: S16, DType.FLOAT32: F32})
