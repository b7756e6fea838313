"""Absolute value. TFLite ABS, int8 (`AbsEvalQuantized`)."""

from __future__ import annotations

import numpy as np

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.common import Int64, ratio_float32, sample_unary
from toolchain.ops.unary.float_table import table_spec


def _apply(op: Op, graph: Graph, stored: Int64) -> Int64:
    x, y = graph.input(op, 0).q, graph.output(op).q
    size = np.abs(stored - x.zero_point)
    if x.scale != y.scale:
        multiplier, shift = quantize_multiplier(ratio_float32(x.scale, divisor=y.scale), 255)
        size = multiply_by_quantized_multiplier(size, multiplier, shift)
    clamped: Int64 = np.clip(size + y.zero_point, -128, 127)
    return clamped


SPEC = table_spec("abs", _apply, sample_unary)
