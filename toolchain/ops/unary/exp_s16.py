"""Exponential function. TFLite EXP, int16."""

from __future__ import annotations

from toolchain.ops.unary import exp
from toolchain.ops.unary.float_table_s16 import float_table_s16_spec

SPEC = float_table_s16_spec(exp.SPEC, lambda op, graph, x: exp.exp_float32(x))
