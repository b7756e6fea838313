"""Exponential function. TFLite EXP, int16."""

from __future__ import annotations

from toolchain.ops import exp
from toolchain.ops._float_table_s16 import float_table_s16_spec

SPEC = float_table_s16_spec(exp.SPEC, lambda op, graph, x: exp.exp_float32(x))
