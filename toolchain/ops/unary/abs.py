"""Absolute value. TFLite ABS, int8 and int16 (`AbsEvalQuantized`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.common import (
    Int64,
    check_node,
    ratio_float32,
    require_types,
    sample_unary,
)
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.readers.int16 import int16_sample
from toolchain.ops.unary.float_table import table_spec
from toolchain.ops.unary.unary_f32 import float_form


def _apply(op: kit.AnyOperator, stored: Int64) -> Int64:
    x, y = op.x.q, op.y.q
    size = np.abs(stored - x.zero_point)
    if x.scale != y.scale:
        multiplier, shift = quantize_multiplier(ratio_float32(x.scale, divisor=y.scale))
        size = multiply_by_quantized_multiplier(size, multiplier, shift)
    clamped: Int64 = np.clip(size + y.zero_point, -128, 127)
    return clamped


_INT8 = table_spec("abs", _apply, sample_unary)


def _scaling_s16(op: kit.AnyOperator) -> tuple[int, int]:
    """Multiplier and left shift; 1 where the scales are one."""
    x, y = op.x.q.scale, op.y.q.scale
    return quantize_multiplier(1.0 if x == y else ratio_float32(x, divisor=y))


def _reference_s16(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    size = np.abs(inputs[0].astype(np.int64))
    scaled = multiply_by_quantized_multiplier(size, *_scaling_s16(op))
    return (np.clip(scaled, -32768, 32767).astype(np.int16),)


def _select_s16(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT16)
    multiplier, shift = _scaling_s16(op)
    params = kit.Struct("thimble_abs_s16_params", {"multiplier": multiplier, "shift": shift})
    return sized_kernel(op, "thimble_abs_s16", {"params": params})


def _read_s16(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT16)
    return kit.ReadOp(kit.Attributes(), (0,))


assert _INT8.tflite is not None
_INT16 = replace(
    _INT8,
    reference=_reference_s16,
    select=_select_s16,
    sample=int16_sample(_INT8.sample),
    tflite=kit.TfliteBinding(("ABS",), _read_s16, _INT8.tflite.write),
    dtype=kit.DType.INT16,
    limits="int16",
)

SPEC = kit.OpSpec((_INT8, _INT16, float_form(_INT8)))
