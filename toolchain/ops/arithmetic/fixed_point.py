"""TFLite's fixed-point arithmetic, in NumPy, bit for bit.

Source: TensorFlow Lite `quantization_util.cc` and gemmlowp `fixedpoint.h`; the double-rounding
form that LiteRT's reference kernels and CMSIS-NN's default build use.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType, Tensor

Int32 = NDArray[np.int32]
Whole = TypeVar("Whole", int, NDArray[np.int64])
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


class ScaleError(ValueError):
    """Scales are so far apart that fixed-point arithmetic in 32 bits is undefined.

    The message names a factor. Lowering adds the operator's name.
    """


MOST_LEFT_SHIFT = 31
"""TFLite multiplies by `1 << shift`. Up to here every build wraps what overflows, as our C does.
For more C leaves `1 << shift` undefined: x86 shifts by the remainder modulo 32, Arm gives 0.
"""


def check_reach(factor: float, largest: int) -> None:
    """Raise ScaleError if a real number up to `largest`, times `factor`, overflows int32.

    TFLite's kernels convert it without a check. That is undefined in C, and builds differ: x86
    gives the smallest integer, Arm saturates.
    """
    if not (factor >= 0 and factor * max(largest, 1) < 2.0**31):
        raise ScaleError(
            f"its scales make a factor of {factor:.4g}, and values up to {largest:,} times that "
            "overrun 32 bits, which C leaves undefined; requantise the model with a representative "
            "data set"
        )


def held_in_int32(
    lowest: NDArray[np.int64], highest: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The least and greatest value that an int32 accumulator ends with, for each channel's sums
    from `lowest` to `highest`. It wraps: all values, if some of the sums do and some do not.
    """
    turns = (lowest + (1 << 31)) >> 32
    alike = turns == (highest + (1 << 31)) >> 32
    return (
        np.where(alike, lowest - (turns << 32), INT32_MIN),
        np.where(alike, highest - (turns << 32), INT32_MAX),
    )


def check_sums(
    lowest: NDArray[np.int64],
    highest: NDArray[np.int64],
    multiplier: Int32 | int,
    shift: Int32 | int,
    offset: int,
) -> None:
    """Raise ScaleError where int32 does not hold what `MultiplyByQuantizedMultiplier` makes of a
    sum: the sum shifted left, or the scaled sum plus `offset`. That is undefined in TFLite.

    Sums have one entry per channel, factors one or as many. Sums wrap, in TFLite's kernels as in
    Thimble's: only what they end with matters (`held_in_int32`).
    """
    ends = held_in_int32(lowest, highest)
    left = np.broadcast_to(np.maximum(shift, 0), lowest.shape).astype(np.int64)
    for end in ends:
        shifted = end << np.minimum(left, 31)
        overruns = (shifted < INT32_MIN) | (shifted > INT32_MAX)
        if overruns.any():
            channel = int(np.argmax(overruns))
            raise ScaleError(
                f"in channel {channel} its scales ask for sums of up to "
                f"{abs(int(end[channel])):,} times 2**{int(left[channel])}, which overruns 32 "
                "bits; requantise the model with a representative data set"
            )
        scaled = multiply_by_quantized_multiplier(end, multiplier, shift) + offset
        if scaled.size and not INT32_MIN <= scaled.min() <= scaled.max() <= INT32_MAX:
            raise ScaleError(
                f"its scaled sums and the zero point {offset} overrun 32 bits; requantise the "
                "model with a representative data set"
            )


def wrap_int32(values: Whole) -> Whole:
    """Values as an int32 accumulator holds them, with two's-complement wrap."""
    return (values + (1 << 31)) % (1 << 32) - (1 << 31)


def quantize_multiplier(real: float, largest: int = 1) -> tuple[int, int]:
    """A real factor as (multiplier in Q0.31, left shift): factor ~ multiplier * 2**(shift - 31).

    TFLite `QuantizeMultiplier`. `largest` is the greatest magnitude that will be multiplied: only 0
    can be multiplied by any factor. Raises ScaleError for a negative or non-finite factor, and for
    a left shift beyond MOST_LEFT_SHIFT.
    """
    if not math.isfinite(real) or real < 0:
        raise ScaleError(f"its scales make a factor of {real}, which is no finite number")
    if real == 0.0:
        return 0, 0
    fraction, shift = math.frexp(real)
    fixed = math.floor(fraction * (1 << 31) + 0.5)
    if fixed == 1 << 31:
        fixed //= 2
        shift += 1
    if shift < -31:
        return 0, 0
    if shift <= MOST_LEFT_SHIFT:
        return fixed, shift
    if largest == 0:
        return 0, 0
    raise ScaleError(
        f"its scales make a factor of {real:.4g}; C leaves a left shift of 32 bits by {shift} "
        "undefined; requantise the model with a representative data set"
    )


def quantize_multipliers(reals: NDArray[np.float64]) -> tuple[Int32, Int32]:
    """`quantize_multiplier` of many factors: multipliers, and left shifts."""
    if not (np.isfinite(reals) & (reals >= 0)).all() or (reals >= 1).any():
        pairs = [quantize_multiplier(real) for real in reals.tolist()]  # which checks each
        return tuple(np.array(each, np.int32) for each in zip(*pairs, strict=True))  # type: ignore[return-value]
    fraction, shift = np.frexp(reals)
    fixed = np.floor(fraction * (1 << 31) + 0.5)
    full = fixed == 1 << 31
    fixed, shift = np.where(full, fixed / 2, fixed), shift + full
    none = (reals == 0) | (shift < -31)
    return np.where(none, 0, fixed).astype(np.int32), np.where(none, 0, shift).astype(np.int32)


def round_half_away(x: NDArray[np.float64]) -> NDArray[np.int64]:
    """C's `round` on doubles: the nearest integer, halves away from zero."""
    magnitude = np.abs(x)
    whole = np.floor(magnitude)
    rounded: NDArray[np.int64] = np.copysign(whole + (magnitude - whole >= 0.5), x).astype(np.int64)
    return rounded


def saturating_doubling_high_mul(
    a: NDArray[np.int64], b: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """`SaturatingRoundingDoublingHighMul`: round(a * b / 2**31) as C truncates."""
    product = a * np.int64(b) if isinstance(b, int) else a * b
    nudge = np.where(product >= 0, np.int64(1 << 30), np.int64(1 - (1 << 30)))
    total = product + nudge
    quotient = np.where(total >= 0, total >> 31, -((-total) >> 31))
    return np.minimum(quotient, INT32_MAX).astype(np.int64)


def rounding_divide_by_pot(
    x: NDArray[np.int64], exponent: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """`RoundingDivideByPOT`: x / 2**exponent, halves away from zero."""
    exponents = np.asarray(exponent, dtype=np.int64)
    mask = (np.int64(1) << exponents) - 1
    remainder = x & mask
    threshold = (mask >> 1) + (x < 0)
    return (x >> exponents) + (remainder > threshold)


def multiply_by_quantized_multiplier(
    x: NDArray[np.integer],
    multiplier: NDArray[np.integer] | int,
    shift: NDArray[np.integer] | int,
) -> NDArray[np.int64]:
    """TFLite `MultiplyByQuantizedMultiplier` on int32 values that are held in int64. Arguments
    broadcast.

    A positive `shift` is to the left, a negative one to the right, as `quantize_multiplier` returns
    it.
    """
    values = np.asarray(x, dtype=np.int64)
    shifts = np.asarray(shift, dtype=np.int64)
    left = np.maximum(shifts, 0)
    right = np.maximum(-shifts, 0)
    shifted = ((values << left) + (1 << 31)) % (1 << 32) - (1 << 31)
    factors = np.asarray(multiplier, dtype=np.int64)
    return rounding_divide_by_pot(saturating_doubling_high_mul(shifted, factors), right)


def scale_sums(
    sums: NDArray[np.int64], multiplier: Int32 | int, shift: Int32 | int
) -> NDArray[np.int64]:
    """int64 sums times multiplier * 2**(shift - 31), halves up, with 16 bits of the multiplier.

    LiteRT `MultiplyByQuantizedMultiplier` on int64, whose result is an int32 that wraps; CMSIS-NN
    `arm_nn_requantize_s64` where int32 holds twice the result.
    """
    whole = np.asarray(multiplier, dtype=np.int64)
    reduced = np.where(whole < 0x7FFF0000, (whole + (1 << 15)) >> 16, 0x7FFF)
    right = 15 - np.asarray(shift, dtype=np.int64)
    return wrap_int32((sums * reduced + (np.int64(1) << (right - 1))) >> right)


def requantise(
    total: NDArray[np.int64],
    multiplier: Int32 | int,
    shift: Int32 | int,
    y: Tensor,
    low: int,
    high: int,
) -> NDArray[np.generic]:
    """Scale sums (channels last), add y's zero point and clamp to `low`..`high`; in y's type.

    An int8 kernel sums in int32, which wraps; an int16 kernel in int64.
    """
    if y.dtype is DType.INT16:
        scaled = scale_sums(total, multiplier, shift)
    else:
        scaled = multiply_by_quantized_multiplier(wrap_int32(total), multiplier, shift)
    return np.clip(scaled + y.q.zero_point, low, high).astype(y.dtype.numpy)


def one_over_one_plus_x(x: NDArray[np.int64]) -> NDArray[np.int64]:
    """gemmlowp `one_over_one_plus_x_for_x_in_0_1`: Q0.31 in and out, by Newton's method."""
    half_denominator = (x + INT32_MAX + 1) >> 1
    inverse = 1515870810 + saturating_doubling_high_mul(half_denominator, -1010580540)
    for _ in range(3):
        rest = (1 << 29) - saturating_doubling_high_mul(half_denominator, inverse)
        step = saturating_doubling_high_mul(inverse, rest) << 2
        inverse = inverse + np.clip(step, INT32_MIN, INT32_MAX)
    doubled: NDArray[np.int64] = np.clip(inverse << 1, INT32_MIN, INT32_MAX)
    return doubled


@lru_cache(maxsize=4096)
def inverse_square_root(x: int) -> tuple[int, int]:
    """1 / sqrt(x) of a positive integer as (multiplier in Q0.31, left shift).

    `GetInvSqrtQuantizedMultiplierExp`: five Newton steps in gemmlowp's fixed point with 3 integer
    bits.
    """
    if x <= 1:
        return INT32_MAX, 0
    right = 11
    while x >= 1 << 29:
        x //= 4
        right += 1
    pairs = (31 - x.bit_length()) // 2 - 1
    right -= pairs
    scaled = x << (2 * pairs)
    half = (scaled >> 2) + ((scaled >> 1) & 1)
    root, three_halves = 1 << 28, 3 << 27
    for _ in range(5):
        cube = _saturated(_high_mul(_high_mul(root, root), root) << 6)
        root = _saturated((_high_mul(three_halves, root) - _high_mul(half, cube)) << 3)
    root = _high_mul(root, _HALF_SQRT_2)
    return (root << max(-right, 0)), -max(right, 0)


_HALF_SQRT_2 = 1518500250


def _high_mul(a: int, b: int) -> int:
    return int(saturating_doubling_high_mul(np.array([a], np.int64), b)[0])


def _saturated(x: int) -> int:
    return min(max(x, INT32_MIN), INT32_MAX)


def reciprocal(x: int) -> tuple[int, int]:
    """1 / x of a positive integer below 2**31 as (multiplier in Q0.31, right shift).

    `GetReciprocal(x, 31)`.
    """
    headroom = 32 - x.bit_length()
    above_one = (x << headroom) - (1 << 31)
    inverse = one_over_one_plus_x(np.array([above_one], np.int64))
    return int(inverse[0]), 31 - headroom
