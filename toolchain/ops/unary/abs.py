"""Absolute value. TFLite ABS, int8 (`AbsEvalQuantized`)."""

from __future__ import annotations

import numpy as np

from toolchain.ir import DType, Graph, Op
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.common import Int64, ratio_float32, sample_unary
from toolchain.ops.spec import by_type
from toolchain.ops.unary.float_table import table_spec
from toolchain.ops.unary.unary_f32 import float_form


def _apply(op: Op, graph: Graph, stored: Int64) -> Int64:
    x, y = graph.input(op, 0).q, graph.output(op).q
    size = np.abs(stored - x.zero_point)
    if x.scale != y.scale:
        multiplier, shift = quantize_multiplier(ratio_float32(x.scale, divisor=y.scale), 255)
        size = multiply_by_quantized_multiplier(size, multiplier, shift)
    clamped: Int64 = np.clip(size + y.zero_point, -128, 127)
    return clamped


_INT8 = table_spec("abs", _apply, sample_unary)

SPEC = by_type({DType.INT8: _INT8, DType.FLOAT32: float_form(_INT8)})
