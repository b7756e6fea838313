"""Exponential function. TFLite EXP, int8 (`ExpPrepare`)."""

from __future__ import annotations

from toolchain.ops.arithmetic.libm import expf
from toolchain.ops.unary.float_table import Float32, float_table_spec


def exp_float32(x: Float32) -> Float32:
    return expf(x)


SPEC = float_table_spec("exp", exp_float32)
