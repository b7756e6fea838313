"""Resize by bilinear interpolation: see `bilinear` (int8 and int16) and `bilinear_f32`."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.resize.bilinear import INT8
from toolchain.ops.resize.bilinear_f32 import FLOAT32

_INT16 = int16_form(INT8, INT8.limits)
SPEC = kit.OpSpec((INT8, _INT16, FLOAT32))
