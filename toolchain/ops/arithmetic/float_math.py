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


def floor(x: Float32) -> Float32:
    """`thimble_floor_f32`."""
    below: Float32 = np.floor(x)
    return below


def nearest(x: Float32) -> Float32:
    """`thimble_round_f32`: halves to even, and never -0 from below 0 (`RoundToNearest`)."""
    below = np.floor(x)
    rest = x - below
    up = (rest > _HALF) | ((rest == _HALF) & (below * _HALF != np.floor(below * _HALF)))
    return np.where(up, below + _ONE, below)


_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561
"""The first 256 bits behind the point."""
_WORDS = np.array([_TWO_OVER_PI >> (32 * k) & 0xFFFFFFFF for k in range(8, -1, -1)], np.uint64)
_NEAR = np.float32(0.7853981634)


def _angle(x: Float32) -> tuple[Float32, NDArray[np.uint32]]:
    """`thimble_angle_f32`: what is left after whole quarters of a turn, and their number."""
    bits = np.ascontiguousarray(np.where(np.abs(x) > _NEAR, x, _ONE)).view(np.uint32)
    first = ((bits >> 23) & 255).astype(np.int64) - 120
    m = ((bits & 0x7FFFFF) | 0x800000).astype(np.uint64)

    def word_at(bit: NDArray[np.int64]) -> NDArray[np.uint64]:
        two = (_WORDS[bit >> 5] << np.uint64(32)) | _WORDS[(bit >> 5) + 1]
        word: NDArray[np.uint64] = (two << (bit & 31).astype(np.uint64)) >> np.uint64(32)
        return word

    turns = (m * word_at(first + 64)) >> np.uint64(32)
    turns = turns + m * word_at(first + 32) + (m * word_at(first) << np.uint64(32))
    whole = (turns + np.uint64(1 << 61)) >> np.uint64(62)
    rest = (turns - (whole << np.uint64(62))).view(np.int64)
    angle = rest.astype(np.float32) * np.float32(3.4061215800865545e-19)
    negative, quarters = bits >> 31 != 0, whole.astype(np.uint32)
    far = np.abs(x) > _NEAR
    angle = np.where(far, np.where(negative, np.float32(0) - angle, angle), x)
    quarters = np.where(far, np.where(negative, np.uint32(0) - quarters, quarters), np.uint32(0))
    return angle, quarters.astype(np.uint32)


def _turned(x: Float32, quarter: int) -> Float32:
    with np.errstate(all="ignore"):
        r, quarters = _angle(np.where(np.isfinite(x), x, np.float32(0)))
        quarters = quarters + np.uint32(quarter)
        z = r * r
        sine = _horner(_SINE_SERIES, z) * (z * r) + r
        cosine = _horner(_COSINE_SERIES, z) * (z * z) + (_ONE - _HALF * z)
        value = np.where(quarters & 1 != 0, cosine, sine)
        value = np.where(quarters & 2 != 0, np.float32(0) - value, value)
        return np.where(np.isfinite(x), value, x - x)


_SINE_SERIES = (
    2.7183114939898219064e-6,
    -1.9839334836096632576e-4,
    8.3333293858894631756e-3,
    -1.6666666641626524e-1,
)
_COSINE_SERIES = (2.4390448796277409065e-5, -1.3886763774609929e-3, 4.1666623323739063189e-2)


def sin(x: Float32) -> Float32:
    """`thimble_sin_f32`."""
    return _turned(x, 0)


def cos(x: Float32) -> Float32:
    """`thimble_cos_f32`."""
    return _turned(x, 1)


def floor_div(a: Float32, b: Float32) -> Float32:
    """`thimble_floor_div_f32`: TFLite divides in double, too."""
    below: Float32 = np.floor(a.astype(np.float64) / b.astype(np.float64)).astype(np.float32)
    return below


def floor_mod(a: Float32, b: Float32) -> Float32:
    """`thimble_floor_mod_f32`."""
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


_LOG_TERMS, _EXP_TERMS = 10, 12


def _binary_logarithm(x: NDArray[np.float64]) -> NDArray[np.float64]:
    bits = np.ascontiguousarray(x).view(np.int64)
    exponent = (bits - 0x3FE6A09E667F3BCD) >> 52
    m = (bits - (exponent << 52)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z, p = s * s, np.zeros_like(s)
    for odd in range(2 * _LOG_TERMS - 1, 0, -2):
        p = p * z + 1.0 / odd
    value: NDArray[np.float64] = exponent + s * p * 2.8853900817779268
    return value


def _binary_power(x: NDArray[np.float64]) -> NDArray[np.float64]:
    whole = np.trunc(np.where(x < 0, x - 0.5, x + 0.5)).astype(np.int64)
    r, p = (x - whole) * 0.6931471805599453, np.ones_like(x)
    for term in range(_EXP_TERMS, 0, -1):
        p = p * r / term + 1.0
    value: NDArray[np.float64] = p * ((whole + 1023) << 52).view(np.float64)
    return value


_ATAN_SERIES = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)


def atan2(y: Float32, x: Float32) -> Float32:
    """`thimble_atan2_f32`."""
    y, x = np.broadcast_arrays(y, x)
    width, height = np.abs(x), np.abs(y)
    more, less = np.maximum(width, height), np.minimum(width, height)
    with np.errstate(all="ignore"):
        alike = np.where(more > 0, _ONE, np.float32(0))
        slope = np.where(less == more, alike, less / np.where(more == 0, _ONE, more))
        steep = slope > np.float32(0.4142135624)
        t = np.where(steep, (slope - _ONE) / (slope + _ONE), slope)
        z = t * t
        near = _horner(_ATAN_SERIES, z) * z * t + t
        angle = np.where(steep, np.float32(0.7853981634) + near, near)
        across = np.float32(1.570796371) - (angle + np.float32(4.371138829e-8))
        angle = np.where(height > width, across, angle)
        behind = np.float32(3.141592741) - (angle + np.float32(8.742277657e-8))
        angle = np.where(np.signbit(x), behind, angle)
        angle = np.where(np.isnan(x) | np.isnan(y), x + y, angle)
    turned: Float32 = np.where(np.signbit(y) & ~np.isnan(angle), -angle, angle).astype(np.float32)
    return turned


_NEAR_WHOLE = np.float32(1e-5)


def power_multiplied(x: Float32, y: Float32) -> Float32:
    """`thimble_pow_multiplied_f32`; LiteRT's `IntegerExponentPow`."""
    x, y = np.broadcast_arrays(x, y)
    result = power(x, y).copy()
    fits = (y >= _HALF) & (y < np.float32(2**31))
    whole = np.floor(np.where(fits, y, _ONE).astype(np.float64) + 0.5)
    near = np.abs(y - whole.astype(np.float32)) < _NEAR_WHOLE
    for exponent in np.unique(whole[fits & near]):
        places = fits & near & (whole == exponent)
        base = product = x[places]
        for bit in bin(int(exponent))[3:]:
            product = _finite(product * product)
            product = _finite(base * product) if bit == "1" else product
        result[places] = product
    return result


def _finite(x: Float32) -> Float32:
    """Clamped to finite numbers; NaN stays NaN."""
    largest = np.finfo(np.float32).max
    return np.where(x > largest, largest, np.where(x < -largest, -largest, x))


def power(x: Float32, y: Float32) -> Float32:
    """`thimble_pow_f32`."""
    x, y = np.broadcast_arrays(x, y)
    with np.errstate(all="ignore"):
        whole = np.floor(y) == y
        odd = whole & (np.floor(y * _HALF) != y * _HALF)
        size = np.abs(x)
        plain = np.isfinite(size) & (size != 0) & (size != 1)
        exponent = y.astype(np.float64) * _binary_logarithm(
            np.where(plain, size, _ONE).astype(np.float64)
        )
        value = _binary_power(np.clip(np.nan_to_num(exponent), -160, 160)).astype(np.float32)
    infinite, zero = np.float32(np.inf), np.float32(0)
    value = np.where(size == 1, _ONE, value)
    value = np.where(size == 0, np.where(y < 0, infinite, zero), value)
    value = np.where(np.isinf(size), np.where(y < 0, zero, infinite), value)
    value = np.where(odd & np.signbit(x), -value, value)
    unreal = np.isnan(x) | np.isnan(y) | ((x < 0) & ~whole & np.isfinite(x))
    value = np.where(unreal, np.float32(np.nan), value)
    return np.where((y == 0) | (x == 1), _ONE, value).astype(np.float32)
