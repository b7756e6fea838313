"""Resize by bilinear interpolation: see `bilinear` (int8 and int16) and `bilinear_f32`."""

from __future__ import annotations

from dataclasses import replace

from toolchain.ir import DType
from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.resize.bilinear import INT8
from toolchain.ops.resize.bilinear_f32 import FLOAT32
from toolchain.ops.spec import by_type

_INT16 = replace(
    INT8,
    sample=wide_sample(INT8.sample),
    dtypes=WIDE,
)
SPEC = by_type({DType.INT8: INT8, DType.INT16: _INT16, DType.FLOAT32: FLOAT32})
