"""TFLite's two roundings of a scaled int32 as one shift of a high word.

`MultiplyByQuantizedMultiplier` rounds x = value * multiplier twice: t = floor((x + 2**30) / 2**31),
then t / 2**right with halves away from zero. Nested floors merge, so that is
floor((x + c) / 2**(31 + right)) with one c for x >= 0 and another, 2**31 less, for x < 0. With the
value shifted up by `growth` >= left + 2 bits, both fall on whole units of the 32-bit high word.
Where 32 bits have no room for that, the left shift is so long that every value saturates, or wraps
to 0.
"""

from __future__ import annotations

from dataclasses import dataclass

_MAX_RIGHT_SHIFT = 20
"""A longer shift takes every value of 17 bits to 0, too."""
_MAX_SHIFT = 22
"""The output byte, above this many fraction bits, stays within 2**30."""


@dataclass(frozen=True)
class MergedRounding:
    """TFLite's scaled result, with the output's zero point added, is (h + bias) >> shift. Here h is
    the high word of (value << growth) * multiplier, where the shift wraps, plus `negative_bias` if
    that is negative.
    """

    growth: int
    bias: int
    negative_bias: int
    shift: int


def merged_rounding(left_shift: int, zero_point: int, largest: int) -> MergedRounding:
    """The merged form for a left shift (negative: right shift) and |value| <= `largest`, which has
    at most 17 bits.
    """
    left = max(left_shift, 0)
    right = min(max(-left_shift, 0), _MAX_RIGHT_SHIFT)
    room = ((2**31 - 1) // largest).bit_length() - 1
    if left + 2 > room:  # of a multiple of 2**14 the high word is 0, or far beyond int8
        return MergedRounding(left, zero_point, 0, 0)
    growth = min(room, _MAX_SHIFT + 1 + left - right)
    shift = right - left - 1 + growth
    half = 1 << (right - 1) if right else 0
    bias = (zero_point << shift) + (half << (growth - 1)) + (1 << (growth - 2 - left))
    return MergedRounding(growth, bias, -(1 << (growth - 1)) if right else 0, shift)
