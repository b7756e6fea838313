"""Integer straight lines and planes that equal a quantised function exactly.

TFLite's elementwise kernels round two or three times. Over int8 operands the result is nevertheless
a digital line or plane: integers (factors, bias, shift) usually exist with

    clamp((factor_1 * a + factor_2 * b + bias) >> shift, low, high)

equal to the reference for every operand. `affine_form` searches them and proves the equality by
trying all 256 or 65,536 inputs, so a kernel may use one multiply-accumulate per operand.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_UNBOUNDED = 1 << 20
_SEARCH_RADIUS = 3
INT8_LEVELS: NDArray[np.int64] = np.arange(-128, 128, dtype=np.int64)


@dataclass(frozen=True)
class AffineForm:
    """`(sum(factors[i] * operand_i) + bias) >> shift`; no partial sum leaves int32."""

    factors: tuple[int, ...]
    bias: int
    shift: int


def fitting_bias(
    base: NDArray[np.int64], target: NDArray[np.int64], shift: int, low: int, high: int, wanted: int
) -> int | None:
    """The bias nearest `wanted` with clamp((base + bias) >> shift, low, high) == target, if any."""
    below = np.where(target > low, target, -_UNBOUNDED) << shift
    above = (np.where(target < high, target + 1, _UNBOUNDED) << shift) - 1
    least, most = int((below - base).max()), int((above - base).min())
    return min(max(wanted, least), most) if least <= most else None


def affine_form(
    target: NDArray[np.int64], slopes: tuple[float, ...], offset: float, low: int, high: int
) -> AffineForm | None:
    """The form that equals `target` after clamping to [low, high], or None where none was found.

    `target` has 256 entries per operand, for operand values -128..127, already clamped. `slopes`
    and `offset` are its real factors and constant.
    """
    span = 2 * 128 * sum(abs(s) for s in slopes) + 2 * abs(offset) + 2
    shift = min(31 - math.ceil(math.log2(span)), 30)
    if shift < 0:
        return None
    nominal = [round(slope * 2**shift) for slope in slopes]
    wanted = round((offset + 0.5) * 2**shift)
    steps = range(-_SEARCH_RADIUS, _SEARCH_RADIUS + 1)
    for deltas in sorted(itertools.product(steps, repeat=len(slopes)), key=_distance):
        factors = tuple(n + d for n, d in zip(nominal, deltas, strict=True))
        plane: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        for factor in factors:
            plane = np.add.outer(plane, factor * INT8_LEVELS)
        bias = fitting_bias(plane.reshape(target.shape), target, shift, low, high, wanted)
        if bias is not None and abs(bias) + 128 * sum(abs(f) for f in factors) < 2**31:
            return AffineForm(factors, bias, shift)
    return None


def _distance(deltas: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return sum(abs(d) for d in deltas), deltas
