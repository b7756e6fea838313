"""Functions of float32 values in NumPy, operation by operation as the kernels' C computes them.

Each operation rounds once. Results are within two units in the last place of the real function. C
libraries come as near, but their last bits differ.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
_ONE, _TWO, _HALF = np.float32(1), np.float32(2), np.float32(0.5)
_LOG2_HIGH, _LOG2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUND = np.float32(12582912.0)
_EXP_SERIES = (1.984126984e-4, 1.388888889e-3, 8.333333333e-3, 4.166666667e-2, 1.666666667e-1, 0.5)
_LOG_SERIES = (2.222222222e-1, 2.857142857e-1, 4.0e-1, 6.666666667e-1)
_ERF_LEVELS = 24
_ERF_TERMS = 28


def _horner(coefficients: tuple[float, ...], x: Float32) -> Float32:
    first, *rest = (np.float32(c) for c in coefficients)
    start = np.full_like(x, first)
    return reduce(lambda total, coefficient: total * x + coefficient, rest, start)


def exp(x: Float32) -> Float32:
    """`thimble_exp_f32`."""
    inside = np.clip(x, np.float32(-87.33654), np.float32(88.72283))
    whole = (inside * np.float32(1.442695041) + _ROUND) - _ROUND
    n = np.nan_to_num(whole).astype(np.int32)
    r = (inside - whole * _LOG2_HIGH) - whole * _LOG2_LOW
    p = (_horner(_EXP_SERIES, r) * (r * r) + r) + _ONE
    half = n >> 1
    with np.errstate(over="ignore"):
        value = p * _power_of_two(half) * _power_of_two(n - half)
    value = np.where(x < np.float32(-87.33654), np.float32(0), value)
    return np.where(x > np.float32(88.72283), np.float32(np.inf), value)


def _power_of_two(n: NDArray[np.int32]) -> Float32:
    return ((n + 127).astype(np.uint32) << np.uint32(23)).view(np.float32)


def elu(x: Float32) -> Float32:
    """x for x >= 0, exp(x) - 1 for x < 0."""
    return np.where(x < 0, exp(x) - _ONE, x)


def log(x: Float32) -> Float32:
    """`thimble_log_f32`."""
    tiny = x < np.float32(1.175494351e-38)
    positive = np.where((x > 0) & np.isfinite(x), x, _ONE)
    scaled = np.where(tiny & (x > 0), positive * np.float32(33554432.0), positive)
    bits = np.ascontiguousarray(scaled).view(np.uint32)
    exponent = (bits - np.uint32(0x3F3504F3)).view(np.int32) >> 23
    f = (bits - (exponent.view(np.uint32) << np.uint32(23))).view(np.float32) - _ONE
    e = (exponent + np.where(tiny & (x > 0), -25, 0)).astype(np.float32)
    s = f / (_TWO + f)
    z = s * s
    r = _horner(_LOG_SERIES, z) * z
    value = e * _LOG2_HIGH + ((f - s * (f - r)) + e * _LOG2_LOW)
    value = np.where(x == 0, np.float32(-np.inf), value)
    value = np.where(x < 0, np.float32(np.nan), value)
    return np.where(np.isposinf(x) | np.isnan(x), x, value)


def tanh(x: Float32) -> Float32:
    """`thimble_tanh_f32`."""
    a = np.abs(x)
    z = x * x
    with np.errstate(over="ignore", invalid="ignore"):
        top = ((z + np.float32(378)) * z + np.float32(17325)) * z + np.float32(135135)
        bottom = (np.float32(28) * z + np.float32(3150)) * z + np.float32(62370)
        near = x * top / (bottom * z + np.float32(135135))
        far = _ONE - _TWO / (exp(_TWO * a) + _ONE)
    far = np.where(a > np.float32(9.1), _ONE, far)
    return np.where(a >= np.float32(0.625), np.where(x < 0, -far, far), near)


def erf(x: Float32) -> Float32:
    """`thimble_erf_f32`."""
    a = np.minimum(np.abs(x), np.float32(4))
    high = (a.view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)
    rest = (a - high) * (a + high)
    bell = exp(-(high * high)) * (_ONE - (rest - _HALF * (rest * rest)))
    t = np.maximum(a, _TWO)
    outer = t
    for level in range(_ERF_LEVELS, 0, -1):
        t = outer + _HALF * np.float32(level) / t
    far = _ONE - bell * np.float32(0.5641895835) / t
    near_a = np.minimum(a, _TWO)
    z = _TWO * (near_a * near_a)
    total = np.ones_like(x)
    for odd in range(2 * _ERF_TERMS + 1, 1, -2):
        total = _ONE + z / np.float32(odd) * total
    near = np.float32(1.128379167) * x * bell * total
    sign = np.where(x < 0, -_ONE, _ONE)
    value = np.where(a >= _TWO, sign * far, near)
    return np.where(np.abs(x) >= np.float32(4), sign, value)


def logistic(x: Float32) -> Float32:
    """`thimble_logistic_f32`; bounds as in LiteRT's `Logistic`."""
    with np.errstate(over="ignore"):
        middle = _ONE / (_ONE + exp(-x))
    value = np.where(x < np.float32(-9), exp(x), middle)
    return np.where(x > np.float32(16.619047164916992), _ONE, value)


def gelu(x: Float32) -> Float32:
    """`thimble_gelu_f32`."""
    return _HALF * x * (_ONE + erf(x * np.float32(0.7071067812)))


def gelu_tanh(x: Float32) -> Float32:
    """`thimble_gelu_tanh_f32`."""
    inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * (x * x * x))
    return _HALF * x * (_ONE + tanh(inner))
