"""Exponential function. TFLite EXP, int8 and int16 (`ExpPrepare`)."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic.libm import expf
from toolchain.ops.unary.float_table import Float32, float_table_spec
from toolchain.ops.unary.float_table_s16 import float_table_s16_spec
from toolchain.ops.unary.unary_f32 import float_form


def _exp(x: Float32) -> Float32:
    return expf(x)


_INT8 = float_table_spec("exp", _exp)

SPEC = kit.OpSpec((_INT8, float_table_s16_spec(_INT8, lambda op, x: _exp(x)), float_form(_INT8)))
