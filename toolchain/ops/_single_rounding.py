"""Integer arithmetic that equals one rounding of `sum * scale`, proved output by output.

Since 2025 LiteRT's fully connected kernels scale the int32 sum in double precision and round once,
halves away from zero. ONNX Runtime (MLAS) scales it in float32 and rounds halves to even. Both
these and floor((sum * multiplier + 2**(k-1)) / 2**k) never fall as the sum grows, so they agree on
every sum once they agree at each sum where an output value begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from toolchain.ops._fixed_point import INT32_MAX, quantize_multiplier, round_half_away

Int64 = NDArray[np.int64]
Factor = float | NDArray[np.float64]
Rule = Callable[[Int64, Factor], Int64]

_CANDIDATES = 64


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
    """LiteRT's rule: double, halves away from zero."""
    return round_half_away(sums.astype(np.float64) * factor)


def scaled_in_float32(sums: Int64, factor: Factor) -> Int64:
    """ONNX Runtime's rule: float32, halves to even."""
    product = sums.astype(np.float32) * np.asarray(factor, dtype=np.float32)
    rounded: Int64 = np.rint(product).astype(np.int64)
    return rounded


@lru_cache(maxsize=1 << 14)
def single_rounding(
    factor: float, largest: int, low: int, high: int, rule: Rule = scaled_in_double
) -> SingleRounding | None:
    """The multiplier that gives clip(rule(sum, factor), low, high) for |sum| <= largest < 2**31.

    One without a low part where there is such. None where no multiplier next to the nearest does.
    """
    values = np.arange(low + 1, high + 1, dtype=np.int64)
    begins = _first_sums(values, factor, largest, rule)
    for candidate in _candidates(factor):
        reached = candidate.apply(np.minimum(begins, largest)) >= values
        before = candidate.apply(np.maximum(begins - 1, -largest)) >= values
        enough = reached | (begins > largest)
        not_early = ~before | (begins <= -largest)
        if bool((enough & not_early).all()):
            return candidate
    return None


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


def _candidates(factor: float) -> Iterator[SingleRounding]:
    """Multipliers of 31 bits, nearest first, then of 53."""
    multiplier, shift = quantize_multiplier(factor)
    shift = max(shift, -31)
    for step in range(_CANDIDATES):
        for near in (multiplier + step, multiplier - step):
            if 0 <= near <= INT32_MAX:
                yield SingleRounding(near, 0, shift)
    fraction, shift = math.frexp(factor)
    if -31 <= shift <= 30:
        exact = int(math.ldexp(fraction, 53))
        for step in range(_CANDIDATES):
            for near in (exact + step, exact - step):
                yield SingleRounding(near >> 22, near & ((1 << 22) - 1), shift)
