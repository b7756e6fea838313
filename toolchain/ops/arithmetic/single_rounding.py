"""Integer arithmetic that equals one rounding of `sum * scale`, proved for every output value.

Since 2025 LiteRT's fully connected kernels scale the int32 sum in double precision and round once,
halves away from zero. ONNX Runtime (MLAS) scales it in float32 and rounds halves to even. Either
function, and floor((sum * multiplier + 2**(k-1)) / 2**k), is monotonic in the sum. So two of them
agree on every sum if they agree at each sum where a new output value begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.arithmetic.fixed_point import (
    INT32_MAX,
    check_reach,
    quantize_multiplier,
    round_half_away,
)

Int64 = NDArray[np.int64]
Factor = float | NDArray[np.float64] | NDArray[np.float32]
Rule = Callable[[Int64, Factor], Int64]

_CANDIDATES = 64
_LARGEST_DIRECT_SHIFT = 54
"""Up to this shift, output values times 2**k fit int64."""


@dataclass(frozen=True)
class SingleRounding:
    """value = floor((sum * (multiplier + low / 2**22) + 2**(k-1)) / 2**k), k = 31 - shift.

    1 <= k <= 62; low < 2**22. All in int64: sum * low is shifted down on its own.
    """

    multiplier: int
    low: int
    shift: int

    def apply(self, sums: Int64) -> Int64:
        k = 31 - self.shift
        return (sums * self.multiplier + (sums * self.low >> 22) + (1 << (k - 1))) >> k


def scaled_in_double(sums: Int64, factor: Factor) -> Int64:
    """LiteRT's rounding: in double, halves away from zero."""
    return round_half_away(sums.astype(np.float64) * factor)


def scaled_in_float32(sums: Int64, factor: Factor) -> Int64:
    """ONNX Runtime's rounding: in float32, halves to even."""
    product = sums.astype(np.float32) * np.asarray(factor, dtype=np.float32)
    rounded: Int64 = np.rint(product).astype(np.int64)
    return rounded


@lru_cache(maxsize=1 << 14)
def single_rounding(
    factor: float,
    largest: int,
    low: int,
    high: int,
    rule: Rule = scaled_in_double,
    wide: bool = True,
) -> SingleRounding | None:
    """The multiplier with which clip(rule(sum, factor), low, high) is exact for |sum| <= largest <=
    2**31.

    A multiplier without a low part is preferred; with `wide` one with a low part is allowed.
    Returns None if no multiplier next to the nearest is exact. Raises ScaleError if a result
    overflows int32.
    """
    check_reach(factor, largest)
    values = np.arange(low + 1, high + 1, dtype=np.int64)
    begins = _first_sums(values, factor, largest, rule)
    multiplier, shift = quantize_multiplier(factor)
    candidates = _wide(factor) if wide else iter(())
    if 31 - shift <= _LARGEST_DIRECT_SHIFT:
        span = _multipliers(values, begins, largest, 31 - shift)
        if span is not None:
            return SingleRounding(min(max(multiplier, span[0]), span[1]), 0, shift)
    else:
        candidates = chain(_narrow(factor), candidates)
    for candidate in candidates:
        reached = candidate.apply(np.minimum(begins, largest)) >= values
        before = candidate.apply(np.maximum(begins - 1, -largest)) >= values
        enough = reached | (begins > largest)
        not_early = ~before | (begins <= -largest)
        if bool((enough & not_early).all()):
            return candidate
    return None


def _multipliers(values: Int64, begins: Int64, largest: int, k: int) -> tuple[int, int] | None:
    """The least and greatest multiplier of 31 bits with which every value begins where it must.

    At the sum s where value v begins s * multiplier >= v * 2**k - 2**(k-1), and at s - 1 less.
    """
    bounds = (values << k) - (1 << (k - 1))
    low, high = 0, INT32_MAX
    reached, early = begins <= largest, begins > -largest
    # `sums * multiplier <= limits` is what must hold.
    sums = np.concatenate([-begins[reached], begins[early] - 1])
    limits = np.concatenate([-bounds[reached], bounds[early] - 1])
    if bool((limits[sums == 0] < 0).any()):
        return None
    up, down = sums > 0, sums < 0
    high = int(np.min(limits[up] // sums[up], initial=high))
    low = int(np.max(-(limits[down] // -sums[down]), initial=low))
    return (low, high) if low <= high else None


def _first_sums(values: Int64, factor: float, largest: int, rule: Rule) -> Int64:
    """For each value the least sum that rounds to it or more; largest + 1 where none does."""
    below = np.full(values.shape, -largest - 1, dtype=np.int64)
    above = np.full(values.shape, largest + 1, dtype=np.int64)
    for _ in range(math.ceil(math.log2(2 * largest + 3)) + 1):
        middle = (below + above) >> 1
        reached = rule(middle, factor) >= values
        above = np.where(reached & (middle > below), middle, above)
        below = np.where(reached, below, middle)
    return above


def _narrow(factor: float) -> Iterator[SingleRounding]:
    """Multipliers of 31 bits, nearest first."""
    multiplier, shift = quantize_multiplier(factor)
    for step in range(_CANDIDATES):
        for near in (multiplier + step, multiplier - step):
            if 0 <= near <= INT32_MAX:
                yield SingleRounding(near, 0, max(shift, -31))


def _wide(factor: float) -> Iterator[SingleRounding]:
    """Multipliers of 53 bits, nearest first."""
    fraction, shift = math.frexp(factor)
    if -31 <= shift <= 30:
        exact = int(math.ldexp(fraction, 53))
        for step in range(_CANDIDATES):
            for near in (exact + step, exact - step):
                yield SingleRounding(near >> 22, near & ((1 << 22) - 1), shift)
