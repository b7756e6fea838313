"""Integer straight lines and planes that equal a quantised function exactly.

TFLite's elementwise kernels round two or three times. Over int8 operands the result is nevertheless
a digital line or plane: integers (factors, bias, shift) usually exist with

    clamp((factor_1 * a + factor_2 * b + bias) >> shift, low, high)

equal to the reference for every operand. `affine_form` searches them and proves the equality by
trying all 256 or 65,536 inputs, so a kernel may use one multiply-accumulate per operand. Where
halves occur on both sides of zero, which TFLite rounds away from zero, no single bias fits;
`two_sided_form` has a second one for negative sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_UNBOUNDED = 1 << 20
_SEARCH_RADIUS = 3
INT8_LEVELS: NDArray[np.int64] = np.arange(-128, 128, dtype=np.int64)


@dataclass(frozen=True)
class AffineForm:
    """With v = sum(factors[i] * operand_i) + bias the result is `(v + rounding) >> shift`; for v <
    0 it is `(v + negative_bias + rounding) >> shift`. No partial sum overflows int32.
    """

    factors: tuple[int, ...]
    bias: int
    shift: int
    negative_bias: int = 0
    rounding: int = 0


def fitting_bias(
    base: NDArray[np.int64], target: NDArray[np.int64], shift: int, low: int, high: int, wanted: int
) -> int | None:
    """The bias nearest `wanted` with clamp((base + bias) >> shift, low, high) == target; None if
    there is none.
    """
    below = np.where(target > low, target, -_UNBOUNDED) << shift
    above = (np.where(target < high, target + 1, _UNBOUNDED) << shift) - 1
    least = int((below - base).max(initial=-_UNBOUNDED << shift))
    most = int((above - base).min(initial=_UNBOUNDED << shift))
    return min(max(wanted, least), most) if least <= most else None


def affine_form(
    target: NDArray[np.int64], slopes: tuple[float, ...], offset: float, low: int, high: int
) -> AffineForm | None:
    """The form that equals `target` after clamping to [low, high]; None if none was found.

    `target` has a dimension of 256 entries per operand, for stored values -128 to 127, and is
    clamped. `slopes` and `offset` are the function's real coefficients.
    """
    shift = _widest_shift(slopes, offset)
    wanted = round((offset + 0.5) * 2.0**shift)
    for factors in _candidates(slopes, shift):
        bias = fitting_bias(_plane(factors, target), target, shift, low, high, wanted)
        if bias is not None and _fits(factors, bias):
            return AffineForm(factors, bias, shift)
    return None


def two_sided_form(
    target: NDArray[np.int64],
    slopes: tuple[float, ...],
    zero_points: tuple[int, ...],
    output_zero_point: int,
    low: int,
    high: int,
) -> AffineForm | None:
    """Like `affine_form` for a sum of operands less their zero points, with a second bias for
    negative sums.
    """
    offset = output_zero_point - sum(s * z for s, z in zip(slopes, zero_points, strict=True))
    shift = _widest_shift(slopes, abs(offset) + abs(output_zero_point))
    wanted = round((output_zero_point + 0.5) * 2.0**shift)
    for factors in _candidates(slopes, shift):
        bias = -sum(f * z for f, z in zip(factors, zero_points, strict=True))
        sums = _plane(factors, target) + bias
        negative = sums < 0
        rounding = fitting_bias(sums[~negative], target[~negative], shift, low, high, wanted)
        below = fitting_bias(sums[negative], target[negative], shift, low, high, wanted)
        if rounding is None or below is None:
            continue
        if _fits(factors, abs(bias) + max(abs(rounding), abs(below)) + abs(below - rounding)):
            return AffineForm(factors, bias, shift, below - rounding, rounding)
    return None


def _widest_shift(slopes: tuple[float, ...], offset: float) -> int:
    """As many fraction bits as int32 leaves; at least 0."""
    span = 2 * 128 * sum(abs(s) for s in slopes) + 2 * abs(offset) + 2
    return max(min(31 - math.ceil(math.log2(span)), 30), 0)


def _candidates(slopes: tuple[float, ...], shift: int) -> Iterator[tuple[int, ...]]:
    """Factors near the rounded slopes, nearest first."""
    steps = range(-_SEARCH_RADIUS, _SEARCH_RADIUS + 1)
    for deltas in sorted(itertools.product(steps, repeat=len(slopes)), key=_distance):
        yield tuple(round(s * 2**shift) + d for s, d in zip(slopes, deltas, strict=True))


def _plane(factors: tuple[int, ...], target: NDArray[np.int64]) -> NDArray[np.int64]:
    plane: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    for factor in factors:
        plane = np.add.outer(plane, factor * INT8_LEVELS)
    return plane.reshape(target.shape)


def _fits(factors: tuple[int, ...], bias: int) -> bool:
    return abs(bias) + 128 * sum(abs(f) for f in factors) < 2**31


def _distance(deltas: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return sum(abs(d) for d in deltas), deltas
