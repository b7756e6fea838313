"""Gaussian error linear unit, exact or by its tanh approximation. TFLite GELU, int16."""

from __future__ import annotations

from toolchain.ops.unary import gelu
from toolchain.ops.unary.float_table_s16 import float_table_s16_spec

SPEC = float_table_s16_spec(
    gelu.SPEC, lambda op, graph, x: gelu.gelu_float32(op, x), gelu.read_gelu
)
