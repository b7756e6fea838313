"""Absolute values of int8 and int16, as TFLite computes them (`AbsEvalQuantized`)."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.common import Int64, ratio_float32
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.elementwise.rows import Int8, Int16


def _scaling(op: kit.AnyOperator) -> tuple[int, int]:
    """Multiplier and left shift; 1 where the scales are one."""
    x, y = op.x.q.scale, op.y.q.scale
    return quantize_multiplier(1.0 if x == y else ratio_float32(x, divisor=y))


def _apply(op: kit.AnyOperator, stored: Int64) -> Int64:
    x, y = op.x.q, op.y.q
    size = np.abs(stored - x.zero_point)
    if x.scale != y.scale:
        size = multiply_by_quantized_multiplier(size, *_scaling(op))
    clamped: Int64 = np.clip(size + y.zero_point, -128, 127)
    return clamped


def _apply_s16(op: kit.AnyOperator, stored: Int64) -> Int64:
    scaled = multiply_by_quantized_multiplier(np.abs(stored), *_scaling(op))
    clamped: Int64 = np.clip(scaled, -32768, 32767)
    return clamped


def _kernel_s16(op: kit.AnyOperator) -> kit.Kernel:
    multiplier, shift = _scaling(op)
    params = kit.Struct("thimble_abs_s16_params", {"multiplier": multiplier, "shift": shift})
    return sized_kernel(op, "thimble_abs_s16", {"params": params})


INT8, INT16 = Int8(_apply), Int16(_apply_s16, _kernel_s16)
