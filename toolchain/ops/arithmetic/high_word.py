"""Requantisation by the high word of one product: three instructions of a Cortex-M4 or M33.

A sum s becomes floor(((s + d) * multiplier + rounding * 2**32) / 2**k), saturated to int8: SMMLA, a
shift, SSAT. d is folded into the bias. Kernels that take twice the sum with SMMLAR add rounding *
2**31 + 2**30 instead (`Words`). TFLite rounds twice, ONNX Runtime once in float32. Either
result never falls as the sum grows, nor does this one. So they are equal on all sums if every
output value begins at the same sum, and that bounds the constant d * multiplier + rounding * 2**32
from both sides. Example: k = 33 and multiplier = 2**30 is a factor of 1/8. If the value 1 is to
begin at the sum 4, 2**33 - 4 * 2**30 <= constant < 2**33 - 3 * 2**30.

Where no constant will do, another multiplier may: both bounds are linear in it, the distance
between them is concave, and the multiplier that makes it greatest is sought. ONNX Runtime's float32
products are off by up to 2**-24, so that single values begin a sum early or late. With the slope
free a line fits all but 4% of the channels of MLPerf Tiny's ResNet8 and DS-CNN, else all but 9%.

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
_AT_ONCE, MOST_ADDED = 1 << 6, 1 << 16
"""Values of d that are tried together, before the first that will do is computed; d is below the
other."""
_MOST_STEERED = 1 << 14
"""How far a multiplier of 31 bits may move: 2**-16 of it or more."""
_LARGEST = (1 << 31) - 1
_FAR, _WIDE = (1 << 63) - 1, 1 << 40


@dataclass(frozen=True)
class Words:
    """The addend of an instruction to s * multiplier: `first` + the rounding term times `unit`."""

    first: int
    unit: int


SMMLA = Words(0, 1 << 32)
DOUBLED_SMMLAR = Words(1 << 30, 1 << 31)
"""The doubled sum 2 * s, so that 2 * s * multiplier + rounding * 2**32 + 2**31 is shifted by k + 1.
"""


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
    """Where output values begin by ONNX Runtime's rounding in float32, and whether that is known,
    for each channel.
    """
    wide = factors.astype(np.float64)[:, None]
    with np.errstate(over="ignore", divide="ignore"):
        exact = np.ceil((values[None, :] - 0.5) / wide)
    limit = 4 * _EXACT_IN_FLOAT32
    inside = np.abs(exact) < limit
    near = np.clip(exact, -limit, limit).astype(np.int64)[:, :, None] + _NEIGHBOURS
    there = scaled_in_float32(near, factors[:, None, None]) >= values[None, :, None]
    bracketed: NDArray[np.bool_] = ~there[:, :, 0] & there[:, :, -1]
    known: NDArray[np.bool_] = np.all(bracketed | ~inside, axis=1)
    begins = np.take_along_axis(near, there.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    return np.where(inside, begins, near[:, :, 2]), known


def within_float32(lowest: Int64, highest: Int64) -> NDArray[np.bool_]:
    """Whether all sums are integers that float32 holds, for which `begins_in_float32` is right."""
    within: NDArray[np.bool_] = np.maximum(np.abs(lowest), np.abs(highest)) < _EXACT_IN_FLOAT32
    return within


def steered(
    multiplier: Int64,
    k: Int64,
    begins: Int64,
    values: Int64,
    reach: tuple[Int64, Int64],
    words: Words = SMMLA,
) -> Int64:
    """For each channel its multiplier, if `high_word` has constants for it; else the one beside it
    for which the constants have most room.

    The width of a window, concave in the multiplier, is compared at two points of a span that
    shrinks to four.
    """
    ladder = _Ladder(begins, values[None, :] << k[:, None], *reach)
    fits = _fits(reach)
    channels = np.flatnonzero(fits & ~_constants(ladder, multiplier, fits, words).exact)
    some = ladder.of(channels)
    low = np.maximum(multiplier[channels] - _MOST_STEERED, 1)
    high = np.minimum(multiplier[channels] + _MOST_STEERED, _LARGEST)
    while (high - low).max(initial=0) > 3:
        third = (high - low) // 3
        left, right = low + third, high - third
        rises = some.width(left) < some.width(right)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    tried = np.stack([np.minimum(low + step, high) for step in range(4)])
    best = np.argmax([some.width(each) for each in tried], axis=0)
    steered = multiplier.copy()
    steered[channels] = np.take_along_axis(tried, best[None, :], axis=0)[0]
    return steered


def high_word(
    multiplier: Int64,
    k: Int64,
    begins: Int64,
    values: Int64,
    reach: tuple[Int64, Int64],
    offset: int,
    words: Words = SMMLA,
) -> HighWord:
    """For each channel the constants with which `values` begin at the sums `begins`, of those from
    reach[0] to reach[1], and `offset` is added. Multipliers are below 2**31, k is 33 to 54.
    """
    ladder = _Ladder(begins, values[None, :] << k[:, None], *reach)
    constants = _constants(ladder, multiplier, _fits(reach), words)
    rounding, exact = constants.rounding + offset * ((1 << k) // words.unit), constants.exact
    for end in reach:
        high = (end + constants.added) * multiplier // words.unit + rounding
        exact = exact & (np.abs(high) <= _LARGEST)
    return HighWord(exact, constants.added, rounding)


def _fits(reach: tuple[Int64, Int64]) -> NDArray[np.bool_]:
    """Whether sums, with what is added to them, are below 2**30."""
    fits: NDArray[np.bool_] = (reach[0] > -_LARGEST_SUM) & (reach[1] < _LARGEST_SUM - MOST_ADDED)
    return fits


@dataclass(frozen=True)
class _Ladder:
    """Where values begin: the least sums, and the numbers that their products must reach there and
    not before, both [channels, values]; the least and the greatest sum that there are.
    """

    begins: Int64
    bounds: Int64
    lowest: Int64
    highest: Int64

    def of(self, channels: NDArray[np.intp]) -> _Ladder:
        return _Ladder(
            self.begins[channels],
            self.bounds[channels],
            self.lowest[channels],
            self.highest[channels],
        )

    def window(self, multiplier: Int64) -> tuple[Int64, Int64]:
        """For each channel the constants that do: from the first on, before the second."""
        lowest, highest, factor = self.lowest[:, None], self.highest[:, None], multiplier[:, None]
        first = np.clip(self.begins, lowest, highest + 1)
        reached = np.where(first <= highest, self.bounds - first * factor, -_FAR)
        early = np.where(first > lowest, self.bounds - (first - 1) * factor, _FAR)
        least, most = reached.max(axis=1), early.min(axis=1)
        # Without a bound on one side, anything beyond the other will do.
        return (
            np.where(least == -_FAR, most - _WIDE, least),
            np.where(most == _FAR, least + _WIDE, most),
        )

    def width(self, multiplier: Int64) -> Int64:
        least, most = self.window(multiplier)
        return most - least


def _constants(
    ladder: _Ladder, multiplier: Int64, fits: NDArray[np.bool_], words: Words
) -> HighWord:
    """d and a rounding term with these multipliers, for the channels that `fits` says."""
    least, most = ladder.window(multiplier)
    open_, exact = fits & (least < most), np.zeros(len(fits), dtype=np.bool_)
    added, rounding = np.zeros_like(multiplier), np.zeros_like(multiplier)
    # The lack, modulo the unit, is by how much the rounding term is too large.
    lacking, width = words.first - least, most - least
    index = np.flatnonzero(open_)
    tried = np.arange(_AT_ONCE, dtype=np.int64)[None, :]
    over = (lacking[index, None] + tried * multiplier[index, None]) & (words.unit - 1)
    good = over < width[index, None]
    hit = good.any(axis=1)
    added[index[hit]] = good[hit].argmax(axis=1)
    exact[index[hit]] = True
    for each in map(int, index[~hit]):
        begin = -int(lacking[each]) % words.unit
        end = begin + int(width[each]) - 1
        first = first_within(int(multiplier[each]) % words.unit, words.unit, begin, end)
        if first is not None and first < MOST_ADDED:
            added[each], exact[each] = first, True
    rounding[exact] = -((lacking + added * multiplier)[exact] // words.unit)
    return HighWord(exact, added, rounding)


def first_within(step: int, modulus: int, begin: int, end: int) -> int | None:
    """The least n >= 0 with begin <= (n * step) % modulus <= end; None where there is none.

    0 <= step < modulus, 0 <= begin <= end < modulus. As Euclid's algorithm: where no multiple of
    the step lies between the ends, the turns around the modulus are asked for, modulo the step.
    """
    turns: list[tuple[int, int, int]] = []
    while begin:
        if not step:
            return None
        first = -(-begin // step)
        if first * step <= end:
            break
        turns.append((step, modulus, begin))
        step, modulus, begin, end = modulus % step, step, -end % step, -begin % step
    else:
        first = 0
    for step, modulus, begin in reversed(turns):
        first = -(-(begin + modulus * first) // step)
    return first
