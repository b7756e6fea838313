"""x * relu6(x + 3) / 6 of int8, as TFLite HARD_SWISH computes it.

Arithmetic: `reference_ops::HardSwish` in 16-bit fixed point; parameters as in `HardSwishPrepare`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import quantize_multiplier, rounding_divide_by_pot
from toolchain.ops.elementwise.common import Int64, ratio_float32
from toolchain.ops.elementwise.rows import Stored

_INT16_MIN, _INT16_MAX = -(2**15), 2**15 - 1


@dataclass(frozen=True)
class _Scaling:
    """Q0.15 multipliers and left shifts to the output scale and to the scale of 3 / 32768."""

    output_multiplier: int
    output_shift: int
    reluish_multiplier: int
    reluish_shift: int


def _scaling(op: kit.AnyOperator) -> _Scaling:
    x, y = op.x, op.y
    hires = ratio_float32(x.q.scale, divisor=128.0)
    output, output_shift = quantize_multiplier(ratio_float32(hires, divisor=y.q.scale))
    third = ratio_float32(3.0, divisor=32768.0)
    reluish, reluish_shift = quantize_multiplier(ratio_float32(hires, divisor=third))
    if output_shift > 0:  # LiteRT's Prepare refuses it
        raise kit.UnsupportedError(
            f"hard_swish {op.name!r}: the output scale {y.q.scale:g} is below 1/128 of its "
            "input's; requantise the model with a representative data set"
        )
    return _Scaling(_to_int16(output), output_shift, _to_int16(reluish), reluish_shift)


def _to_int16(multiplier: int) -> int:
    """`DownScaleInt32ToInt16Multiplier`."""
    return min((multiplier + (1 << 15)) >> 16, _INT16_MAX)


def _truncating_shift(value: Int64) -> Int64:
    """Division by 2**15 towards zero."""
    return np.where(value >= 0, value >> 15, -(-value >> 15))


def _rounding_high_mul(a: Int64, b: int) -> Int64:
    """gemmlowp `SaturatingRoundingDoublingHighMul` on int16; b is not negative."""
    product = a * b
    return _truncating_shift(product + np.where(product >= 0, 1 << 14, 1 - (1 << 14)))


def _rounding_shift(value: Int64, exponent: int) -> Int64:
    """`RoundingDivideByPOT` on int16. Its mask has 16 bits: what is shifted further becomes 1, or
    -1 where it is negative.
    """
    if exponent <= 15:
        return rounding_divide_by_pot(value, exponent)
    return np.where(value < 0, -1, 1)


def _saturating_left_shift(value: Int64, amount: int) -> Int64:
    saturated: Int64 = np.clip(value << amount, _INT16_MIN, _INT16_MAX)
    return saturated


def _apply(op: kit.AnyOperator, stored: Int64) -> Int64:
    x, y = op.x, op.y
    scaling = _scaling(op)
    hires = (stored - x.q.zero_point) << 7
    preshift = _rounding_high_mul(hires, scaling.output_multiplier)
    reluish = hires
    if scaling.reluish_shift > 0:
        reluish = _saturating_left_shift(reluish, scaling.reluish_shift - 1)
    reluish = _rounding_high_mul(reluish, scaling.reluish_multiplier)
    if scaling.reluish_shift > 0:
        reluish = _saturating_left_shift(reluish, 1)
    elif scaling.reluish_shift < 0:
        reluish = _rounding_shift(reluish, -scaling.reluish_shift)
    gate = (reluish + (1 << 15)) >> 1
    product = _truncating_shift(gate * preshift)
    scaled = _rounding_shift(product, -scaling.output_shift) + y.q.zero_point
    wrapped = scaled.astype(np.int16).astype(np.int64)
    clamped: Int64 = np.clip(wrapped, -128, 127)
    return clamped


INT8 = Stored(_apply, version=1)
