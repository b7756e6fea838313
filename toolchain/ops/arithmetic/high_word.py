"""Requantisation by the high word of one product: three instructions of a Cortex-M4 or M33.

A sum s becomes floor(((s + d) * multiplier + rounding * 2**32) / 2**k), saturated to int8: SMMLA, a
shift, SSAT. d is folded into the bias. TFLite rounds twice, ONNX Runtime once in float32. Either
result never falls as the sum grows, nor does this one. So they are equal on all sums if every
output value begins at the same sum, and that bounds the constant d * multiplier + rounding * 2**32
from both sides. Example: k = 33 and multiplier = 2**30 is a factor of 1/8. If the value 1 is to
begin at the sum 4, 2**33 - 4 * 2**30 <= constant < 2**33 - 3 * 2**30.

TFLite rounds halves away from zero, twice, so that values below 0 begin later than a straight line
has them. Its results are mostly those of no constant, then, unless the activation cuts them off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.arithmetic.single_rounding import Int64, scaled_in_float32

_NEIGHBOURS = np.arange(-2, 3)
"""Where a value may begin, from where exact arithmetic has it: float32 is off by less than one sum
up to sums of 2**24."""
_EXACT_IN_FLOAT32 = 1 << 24
_LARGEST_SUM = 1 << 30
_WORD = 1 << 32
_AT_ONCE, _MOST_ADDED = 1 << 10, 1 << 16
"""Values of d that are tried together, and all that are tried."""


@dataclass(frozen=True)
class HighWord:
    """d (`added`) and the rounding term of each channel; `exact`: whether there are any."""

    exact: NDArray[np.bool_]
    added: Int64
    rounding: Int64


def begins_in_tflite(multiplier: Int64, right: Int64, values: Int64) -> Int64:
    """[channels, values]: the least sum that TFLite's `MultiplyByQuantizedMultiplier`, with a right
    shift of 1 to 23, takes to each value or more.
    """
    half = np.int64(1) << (right - 1)
    high = (values[None, :] << right[:, None]) - half[:, None] + (values <= 0)[None, :]
    return -(-((high << 31) - (1 << 30)) // multiplier[:, None])


def begins_in_float32(
    factors: NDArray[np.float32], values: Int64
) -> tuple[Int64, NDArray[np.bool_]]:
    """The same of ONNX Runtime's rounding in float32, and whether it was found for each channel."""
    wide = factors.astype(np.float64)[:, None]
    with np.errstate(over="ignore", divide="ignore"):
        exact = np.ceil((values[None, :] - 0.5) / wide)
    limit = 4 * _EXACT_IN_FLOAT32
    inside = np.abs(exact) < limit
    near = np.clip(exact, -limit, limit).astype(np.int64)[:, :, None] + _NEIGHBOURS
    there = scaled_in_float32(near, factors[:, None, None]) >= values[None, :, None]
    bracketed: NDArray[np.bool_] = ~there[:, :, 0] & there[:, :, -1]
    found: NDArray[np.bool_] = np.all(bracketed | ~inside, axis=1)
    begins = np.take_along_axis(near, there.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    return np.where(inside, begins, near[:, :, 2]), found


def within_float32(lowest: Int64, highest: Int64) -> NDArray[np.bool_]:
    """Whether all sums are integers that float32 holds, for which `begins_in_float32` is right."""
    found: NDArray[np.bool_] = np.maximum(np.abs(lowest), np.abs(highest)) < _EXACT_IN_FLOAT32
    return found


def high_word(
    multiplier: Int64,
    k: Int64,
    begins: Int64,
    values: Int64,
    reach: tuple[Int64, Int64],
    offset: int,
) -> HighWord:
    """For each channel the constants with which `values` begin at the sums `begins`, of those from
    reach[0] to reach[1], and `offset` is added. Multipliers are below 2**31, k is 33 to 54.
    """
    lowest, highest = (bound[:, None] for bound in reach)
    first = np.clip(begins, lowest, highest + 1)
    bounds, factor = values[None, :] << k[:, None], multiplier[:, None]
    least = np.where(first <= highest, bounds - first * factor, np.iinfo(np.int64).min).max(axis=1)
    most = np.where(first > lowest, bounds - (first - 1) * factor, np.iinfo(np.int64).max).min(
        axis=1
    )
    # Without a bound on one side, anything beyond the other will do.
    least, most = np.maximum(least, most - (1 << 40)), np.minimum(most, least + (1 << 40))
    fits = (reach[0] > -_LARGEST_SUM) & (reach[1] < _LARGEST_SUM - _MOST_ADDED)
    open_, added, words = fits & (least < most), np.zeros_like(k), np.zeros_like(k)
    exact = np.zeros(len(k), dtype=np.bool_)
    for start in range(0, _MOST_ADDED, _AT_ONCE):
        left = np.flatnonzero(open_ & ~exact)
        if not len(left):
            break
        tried = np.arange(start, start + _AT_ONCE, dtype=np.int64)[None, :]
        rest = least[left, None] - tried * multiplier[left, None]
        needed = -(-rest // _WORD)
        good = needed * _WORD - rest < (most - least)[left, None]
        index, hit = good.argmax(axis=1), good.any(axis=1)
        at = left[hit]
        added[at] = start + index[hit]
        words[at] = needed[hit, index[hit]]
        exact[at] = True
    return HighWord(exact, added, words + (offset << (k - 32)))
