"""gemmlowp's int16 fixed-point functions, in NumPy, bit for bit.

Source: gemmlowp `fixedpoint.h` at `std::int16_t`. With `n` integer bits, raw / 2**(15 - n).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
_LOW, _HIGH = -(2**15), 2**15 - 1
_EXP_OF_MINUS_POWERS = (25520, 19875, 12055, 4435, 600, 11, 0)
"""exp(-2**k) in Q0.15 for k = -2 ... 4: the 32-bit constants rounded to 16."""
_EXP_OF_MINUS_EIGHTH, _ONE_THIRD = 28918, 10923
_48_OVER_17, _MINUS_32_OVER_17 = 23130, -15420
_ONE_IN_Q2 = 1 << 13


def _wrap(x: Int64) -> Int64:
    """int16 arithmetic that overflows wraps."""
    wrapped: Int64 = ((x + 2**15) & 0xFFFF) - 2**15
    return wrapped


def _product(a: Int64, b: Int64 | int) -> Int64:
    """`SaturatingRoundingDoublingHighMul`: a * b / 2**15, halves up."""
    product: Int64 = np.minimum((a * b + (1 << 14)) >> 15, _HIGH)
    return product


def _divided(x: Int64, exponent: int) -> Int64:
    """`RoundingDivideByPOT`: halves away from zero."""
    mask = (1 << exponent) - 1
    quotient: Int64 = (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))
    return quotient


def _saturated(x: Int64) -> Int64:
    clamped: Int64 = np.clip(x, _LOW, _HIGH)
    return clamped


def _exp_of_quarter(a: Int64) -> Int64:
    """exp(a) for a in [-1/4, 0), Q0.15: a Taylor expansion around -1/8."""
    x = a + (1 << 12)
    x2 = _product(x, x)
    x3, x4 = _product(x2, x), _product(x2, x2)
    tail = _divided(_product(_divided(x4, 2) + x3, _ONE_THIRD) + x2, 1)
    scaled = _product(x + tail, _EXP_OF_MINUS_EIGHTH)
    return _saturated(_EXP_OF_MINUS_EIGHTH + scaled)


def _exp_of_negative(a: Int64, integer_bits: int) -> Int64:
    """exp(a) for a <= 0 with `integer_bits`, as Q0.15."""
    fraction = 15 - integer_bits
    quarter = 1 << (fraction - 2)
    rest = (a & (quarter - 1)) - quarter
    result = _exp_of_quarter(_saturated(rest << integer_bits))
    whole = rest - a
    for exponent, factor in zip(range(-2, 5), _EXP_OF_MINUS_POWERS, strict=True):
        if integer_bits > exponent:
            present = (whole >> (fraction + exponent)) & 1
            result = np.where(present == 1, _product(result, factor), result)
    if integer_bits > 5:
        result = np.where(a < -(1 << (20 - integer_bits)), 0, result)
    return np.where(a == 0, _HIGH, result).astype(np.int64)


def _reciprocal(a: Int64) -> Int64:
    """2 / (1 + a) for a in (0, 1), with 2 integer bits: Newton-Raphson division."""
    total = a + _HIGH
    half = (total + np.where(total >= 0, 1, -1)) // 2
    x = _wrap(_product(half, _MINUS_32_OVER_17) + _48_OVER_17)
    for _ in range(3):
        error = _wrap(_ONE_IN_Q2 - _product(half, x))
        x = _wrap(x + _saturated(_product(x, error) << 2))
    return x


def logistic(x: NDArray[np.integer], integer_bits: int = 3) -> Int64:
    """1 / (1 + exp(-x)) as Q0.15. gemmlowp `logistic`."""
    a = np.asarray(x, np.int64)
    positive = _divided_to_q0(_reciprocal(_exp_of_negative(-np.abs(a), integer_bits)), 1)
    result = np.where(a > 0, positive, _wrap(_HIGH - positive))
    return np.where(a == 0, 1 << 14, result).astype(np.int64)


def _divided_to_q0(x: Int64, integer_bits: int) -> Int64:
    """`Rescale<0>` of a number with `integer_bits`."""
    return _saturated(x << integer_bits)


def tanh(x: NDArray[np.integer], integer_bits: int) -> Int64:
    """tanh(x) as Q0.15. gemmlowp `tanh`."""
    a = np.asarray(x, np.int64)
    doubled = integer_bits + 1
    magnitude = np.where(a < 0, a, _wrap(-a))
    t = _divided_to_q0(_wrap(_reciprocal(_exp_of_negative(magnitude, doubled)) - _ONE_IN_Q2), 2)
    return np.where(a == 0, 0, np.where(a < 0, _wrap(-t), t)).astype(np.int64)
