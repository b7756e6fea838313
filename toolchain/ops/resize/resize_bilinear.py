"""Resize by bilinear interpolation: see `bilinear` (int8 and int16) and `bilinear_f32`."""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.resize.bilinear import INT8
from toolchain.ops.resize.bilinear_f32 import FLOAT32
from toolchain.ops.spec import by_type

_INT16 = int16_form(INT8, INT8.limits)
SPEC = by_type({DType.INT8: INT8, DType.INT16: _INT16, DType.FLOAT32: FLOAT32})
