"""The C library's `expf`, `logf`, `log1pf` and `erfcf` in NumPy, bit for bit.

LiteRT fills its tables with single-precision results of the C library, which are not always the
nearest numbers; one entry in a hundred int16 tables differs. `expf` and `logf` are S. Nagy's, as in
glibc since 2.27 and in newlib, in double (on machines that fuse multiply and add, one float in some
400,000 differs). `erfcf` is Sun's fdlibm (`s_erff.c`), as in newlib and in glibc before 2.41, in
float32 in its order; so is `log1pf` (`s_log1pf.c`). `tanhf` and `expm1f` are in `tanhf`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]

_HALF, _ONE, _TWO = np.float32(0.5), np.float32(1), np.float32(2)
_ERX = np.float32(8.4506291151e-01)
_EXPONENT = np.float32(0.5625)
_PP = (1.2837916613e-01, -3.2504209876e-01, -2.8481749818e-02, -5.7702702470e-03, -2.3763017452e-05)
_QQ = (
    *(1.0, 3.9791721106e-01, 6.5022252500e-02, 5.0813062117e-03, 1.3249473704e-04),
    -3.9602282413e-06,
)
_PA = (
    *(-2.3621185683e-03, 4.1485610604e-01, -3.7220788002e-01, 3.1834661961e-01, -1.1089469492e-01),
    *(3.5478305072e-02, -2.1663755178e-03),
)
_QA = (
    *(1.0, 1.0642088205e-01, 5.4039794207e-01, 7.1828655899e-02, 1.2617121637e-01),
    *(1.3637083583e-02, 1.1984500103e-02),
)
_RA = (
    *(-9.8649440333e-03, -6.9385856390e-01, -1.0558626175e01, -6.2375331879e01, -1.6239666748e02),
    *(-1.8460508728e02, -8.1287437439e01, -9.8143291473e00),
)
_SA = (
    *(1.0, 1.9651271820e01, 1.3765776062e02, 4.3456588745e02, 6.4538726807e02, 4.2900814819e02),
    *(1.0863500214e02, 6.5702495575e00, -6.0424413532e-02),
)
_RB = (
    *(-9.8649431020e-03, -7.9928326607e-01, -1.7757955551e01, -1.6063638306e02, -6.3756646729e02),
    *(-1.0250950928e03, -4.8351919556e02),
)
_SB = (
    *(1.0, 3.0338060379e01, 3.2579251099e02, 1.5367296143e03, 3.1998581543e03, 2.5530502930e03),
    *(4.7452853394e02, -2.2440952301e01),
)
_MIDDLE, _LARGE, _FAR = np.float32(0.84375), np.float32(1.25), np.float32(2.857142686843872)
_LARGEST, _SATURATED, _QUARTER = np.float32(28), np.float32(6), np.float32(0.25)
_PARTS, _INVERSE_LN2 = 32, float.fromhex("0x1.71547652b82fep+0")
_EXP2 = tuple(
    map(float.fromhex, ("0x1.c6af84b912394p-5", "0x1.ebfce50fac4f3p-3", "0x1.62e42ff0c52d6p-1"))
)
_BEYOND = 300.0
_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_LOG_BEGIN_BITS = np.uint32(0x3F330000)
_LOG_BEGIN = float(np.array([_LOG_BEGIN_BITS]).view(np.float32)[0])
_LOG = tuple(
    map(float.fromhex, ("-0x1.00ea348b88334p-2", "0x1.5575b0be00b6ap-2", "-0x1.ffffef20a4123p-2"))
)
_LOG_TABLE = tuple(
    (float.fromhex(inverse), float.fromhex(logarithm))
    for inverse, logarithm in (
        ("0x1.661ec79f8f3bep+0", "-0x1.57bf7808caadep-2"),
        ("0x1.571ed4aaf883dp+0", "-0x1.2bef0a7c06ddbp-2"),
        ("0x1.49539f0f010bp+0", "-0x1.01eae7f513a67p-2"),
        ("0x1.3c995b0b80385p+0", "-0x1.b31d8a68224e9p-3"),
        ("0x1.30d190c8864a5p+0", "-0x1.6574f0ac07758p-3"),
        ("0x1.25e227b0b8eap+0", "-0x1.1aa2bc79c81p-3"),
        ("0x1.1bb4a4a1a343fp+0", "-0x1.a4e76ce8c0e5ep-4"),
        ("0x1.12358f08ae5bap+0", "-0x1.1973c5a611cccp-4"),
        ("0x1.0953f419900a7p+0", "-0x1.252f438e10c1ep-5"),
        ("0x1p+0", "0x0p+0"),
        ("0x1.e608cfd9a47acp-1", "0x1.aa5aa5df25984p-5"),
        ("0x1.ca4b31f026aap-1", "0x1.c5e53aa362eb4p-4"),
        ("0x1.b2036576afce6p-1", "0x1.526e57720db08p-3"),
        ("0x1.9c2d163a1aa2dp-1", "0x1.bc2860d22477p-3"),
        ("0x1.886e6037841edp-1", "0x1.1058bc8a07ee1p-2"),
        ("0x1.767dcf5534862p-1", "0x1.4043057b6ee09p-2"),
    )
)
_UPPER_BITS = np.uint32(0xFFFFE000)
_LOG1P = (
    *(6.6666668653e-01, 4.0000000596e-01, 2.8571429849e-01, 2.2222198546e-01, 1.8183572590e-01),
    *(1.5313838422e-01, 1.4798198640e-01),
)
_LN2_HIGH, _LN2_LOW = np.float32(6.9313812256e-01), np.float32(9.0580006145e-06)
_NEAR = np.array(0x3ED413D7, dtype=np.uint32).view(np.float32)
_FRACTION, _ROOT_2, _ONE_BITS = np.uint32(0x7FFFFF), np.uint32(0x3504F7), np.uint32(0x3F800000)
_HALF_BITS = np.uint32(0x3F000000)


def _series(x: Float32, coefficients: Sequence[float]) -> Float32:
    """By Horner's rule, the constant first."""
    total = np.full_like(x, np.float32(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        total = np.float32(coefficient) + x * total
    return total


def expf(x: Float32) -> Float32:
    """2**(x / ln 2): the exponent in whole and 32nd parts, the rest by a cubic."""
    wide = np.clip(x.astype(np.float64), -_BEYOND, _BEYOND) * _INVERSE_LN2 * _PARTS
    whole = np.rint(np.nan_to_num(wide))
    r = wide - whole
    cubic, square, linear = (c / _PARTS**n for c, n in zip(_EXP2, (3, 2, 1), strict=True))
    power = (cubic * r + square) * (r * r) + (linear * r + 1.0)
    turns, part = np.divmod(whole, _PARTS)
    scaled = np.ldexp(power * np.exp2(part / _PARTS), turns.astype(np.int32))
    with np.errstate(over="ignore", under="ignore"):
        rounded: Float32 = scaled.astype(np.float32)
    return rounded


def logf(x: Float32) -> Float32:
    """x = 2**k z: k ln 2, a table for the upper bits of z, the rest by a polynomial."""
    wide = np.where((x > 0) & np.isfinite(x), x, 1).astype(np.float64)
    fraction, exponent = np.frexp(wide / _LOG_BEGIN)
    z, k = np.ldexp(fraction * _LOG_BEGIN, 1), exponent - 1
    place = ((z.astype(np.float32).view(np.uint32) - _LOG_BEGIN_BITS) >> np.uint32(19)) & 15
    inverse, logarithm = np.array(_LOG_TABLE).T
    r = z * inverse[place] - 1.0
    square = r * r
    y = (_LOG[0] * square + (_LOG[1] * r + _LOG[2])) * square + ((logarithm[place] + k * _LN2) + r)
    special = np.where(x == 0, -np.inf, np.where(x == np.inf, np.inf, np.nan))
    result: Float32 = np.where((x > 0) & np.isfinite(x), y, special).astype(np.float32)
    return result


def log1pf(x: Float32) -> Float32:
    """ln(1 + x) of 0 <= x < 2**24: 1 + x = 2**k (1 + f) with a correction for its rounding, and a
    series of f / (2 + f).
    """
    total = _ONE + x
    bits = total.view(np.uint32)
    exponent = (bits >> np.uint32(23)).astype(np.int32) - 127
    lost = np.where(exponent > 0, _ONE - (total - x), x - (total - _ONE)) / total
    fraction = bits & _FRACTION
    low = fraction < _ROOT_2
    near = x < _NEAR
    reduced = (fraction | np.where(low, _ONE_BITS, _HALF_BITS)).view(np.float32) - _ONE
    f: Float32 = np.where(near, x, reduced).astype(np.float32)
    k = np.where(near, 0, exponent + ~low).astype(np.float32)
    half_square = _HALF * f * f
    s: Float32 = (f / (_TWO + f)).astype(np.float32)
    square = s * s
    rest = square * _series(square, _LOG1P)
    correction = k * _LN2_LOW + np.where(near, np.float32(0), lost)
    far = k * _LN2_HIGH - ((half_square - (s * (half_square + rest) + correction)) - f)
    tail = half_square * (_ONE - np.float32(2 / 3) * f)
    tiny = (fraction == 0) | (~low & ((np.uint32(0x800000) - fraction) >> np.uint32(2) == 0))
    far = np.where(tiny, k * _LN2_HIGH - ((tail - correction) - f), far)
    result: Float32 = np.where(near, f - (half_square - s * (half_square + rest)), far)
    return result


def _small(x: Float32) -> Float32:
    """The function for |x| < 0.84375."""
    square = x * x
    y = _series(square, _PP) / _series(square, _QQ)
    return np.where(x < _QUARTER, _ONE - (x + x * y), _HALF - (x * y + (x - _HALF)))


def _middle(x: Float32) -> Float32:
    """The function for |x| from there to 1.25."""
    s = np.abs(x) - _ONE
    quotient = _series(s, _PA) / _series(s, _QA)
    return np.where(x >= 0, (_ONE - _ERX) - quotient, _ONE + (_ERX + quotient))


def _large(x: Float32) -> Float32:
    """The function for |x| from there to 28."""
    size = np.abs(x)
    s: Float32 = (_ONE / (size * size)).astype(np.float32)
    near = _series(s, _RA) / _series(s, _SA)
    quotient = np.where(size < _FAR, near, _series(s, _RB) / _series(s, _SB))
    upper = (size.view(np.uint32) & _UPPER_BITS).view(np.float32)
    first = expf(-upper * upper - _EXPONENT)
    r = first * expf((upper - size) * (upper + size) + quotient)
    return np.where(x > 0, r / size, _TWO - r / size)


def erfcf(x: Float32) -> Float32:
    """Complementary error function of float32 values; NaN stays NaN."""
    with np.errstate(all="ignore"):
        size = np.abs(x)
        result = np.where(size < _LARGE, _middle(x), _large(x))
        result = np.where(size < _MIDDLE, _small(x), result)
        ends = np.where(x > 0, np.float32(0), _TWO)
        result = np.where((size >= _LARGEST) | (x < -_SATURATED), ends, result)
    return np.where(np.isnan(x), x, result).astype(np.float32)
