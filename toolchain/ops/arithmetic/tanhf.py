"""The C library's `tanhf` and `expm1f`, in NumPy, bit for bit.

LiteRT fills its int8 tanh table with the single-precision `tanhf` of the C library. glibc before
2.41 and newlib share Sun's fdlibm algorithm (`s_tanhf.c`, `s_expm1f.c`), which is off by up to two
units in the last place: enough to move one table entry in some ten thousand models. All arithmetic
below is float32 in fdlibm's order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]

_ONE, _TWO, _HALF = np.float32(1), np.float32(2), np.float32(0.5)
_LN2_HIGH, _LN2_LOW = np.float32(6.9313812256e-01), np.float32(9.0580006145e-06)
_INVERSE_LN2 = np.float32(1.4426950216)
_Q = tuple(
    np.float32(q)
    for q in (
        -3.3333335072e-02,
        1.5873016091e-03,
        -7.9365076090e-05,
        4.0082177293e-06,
        -2.0109921195e-07,
    )
)
_HALF_LN2, _THREE_HALVES_LN2 = (
    np.array([bits], dtype=np.uint32).view(np.float32)[0] for bits in (0x3EB17218, 0x3F851592)
)
_SATURATED = np.float32(22)
_LEAST_EXPM1 = np.float32(-18.5)
"""Arguments below it give -1, too."""
_TINY_EXPM1 = np.float32(2.0**-25)
_TINY_TANH = np.float32(2.0**-55)


def expm1f(x: Float32) -> Float32:
    """exp(x) - 1 for x < 88."""
    x = np.maximum(x, _LEAST_EXPM1)
    size = np.abs(x)
    k = (_INVERSE_LN2 * x + np.copysign(_HALF, x)).astype(np.int32)
    k = np.where(size < _THREE_HALVES_LN2, np.copysign(_ONE, x).astype(np.int32), k)
    k = np.where(size > _HALF_LN2, k, 0)
    turns = k.astype(np.float32)
    high = x - turns * _LN2_HIGH
    low = turns * _LN2_LOW
    r = high - low
    correction = (high - r) - low

    half_r = _HALF * r
    square = r * half_r
    series = _ONE + square * (
        _Q[0] + square * (_Q[1] + square * (_Q[2] + square * (_Q[3] + square * _Q[4])))
    )
    t = np.float32(3) - series * half_r
    e = square * ((series - t) / (np.float32(6) - r * t))
    unscaled = r - (r * e - square)
    e = (r * (e - correction) - correction) - square

    inverse = np.ldexp(_ONE, -k)
    small = np.ldexp((_ONE - inverse) - (e - r), k)
    middle = np.ldexp((r - (e + inverse)) + _ONE, k)
    outer = np.ldexp(_ONE - (e - r), k) - _ONE
    plus_one = np.where(
        r < np.float32(-0.25),
        -_TWO * (e - (r + _HALF)),
        _ONE + _TWO * (r - e),
    )
    result = np.where((k <= -2) | (k > 56), outer, np.where(k < 23, small, middle))
    result = np.where(k == 1, plus_one, result)
    result = np.where(k == -1, _HALF * (r - e) - _HALF, result)
    result = np.where(k == 0, unscaled, result)
    return np.where(size < _TINY_EXPM1, x, result).astype(np.float32)


def tanhf(x: Float32) -> Float32:
    """Hyperbolic tangent of float32 values."""
    size = np.minimum(np.abs(x), _SATURATED)
    growth = expm1f(np.where(size >= _ONE, _TWO * size, -_TWO * size))
    large = _ONE - _TWO / (growth + _TWO)
    small = -growth / (growth + _TWO)
    result = np.where(size >= _ONE, large, small)
    result = np.where(np.abs(x) >= _SATURATED, _ONE, result)
    result = np.where(size < _TINY_TANH, size, result)
    return np.copysign(result, x).astype(np.float32)
