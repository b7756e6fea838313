"""Bounds of a channel's sums, their scales, and words packed for kernels.

Each kernel's module packs its own constants from these parts, as an array of int32 (little-endian
words); `runtime_c/include/thimble_conv.h` gives the layouts. The input's zero point is folded into
the bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.kernels.runtime_c import defined
from toolchain.ops.arithmetic.fixed_point import (
    INT32_MAX,
    Int32,
    check_sums,
    held_in_int32,
    multiply_by_quantized_multiplier,
    wrap_int32,
)
from toolchain.ops.arithmetic.single_rounding import SingleRounding, single_rounding

Int8 = NDArray[np.int8]
Turns = Callable[[Int8, int], NDArray[np.int32]]
"""Filters [channels, taps] as words, in blocks of so many channels that take turns."""

_SUM_LIMIT = 1 << 30
LARGEST_FAST_SHIFT = 21
"""(2 * 128 + 1) << 21, plus a product below 2**30, still fits int32."""
VECTOR_BYTES = defined("source/support/thimble_lanes.h", "THIMBLE_LANES")
"""int8 lanes of a vector of Helium."""
SHIFT_ONCE = defined("include/thimble_requant.h", "THIMBLE_SHIFT_ONCE")
"""Added to the code of a channel that is rounded once."""
SHIFT_BIAS = defined("include/thimble_requant.h", "THIMBLE_SHIFT_BIAS")
"""Added to the code of a shift that the fast form cannot take."""


@dataclass(frozen=True)
class Scaling:
    """Filters; and for each channel the folded bias, the multiplier with its low part, the shift
    code.
    """

    filters: Int8
    bias: Int32
    multiplier: Int32
    low: Int32
    code: Int8

    def of(self, channels: slice) -> Scaling:
        return Scaling(
            self.filters[channels],
            self.bias[channels],
            self.multiplier[channels],
            self.low[channels],
            self.code[channels],
        )


@dataclass(frozen=True)
class Ending:
    """For each channel: bias, multiplier, int16 shift code, rounding term."""

    bias: Int32
    multiplier: Int32
    code: NDArray[np.int16]
    rounding: Int32


@dataclass(frozen=True)
class Sums:
    """For each channel the bias with what the input's zero point adds, and bounds on the sums of
    int8 inputs before they wrap. `largest`: on the magnitude, on the way there too.
    """

    folded: NDArray[np.int64]
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    largest: NDArray[np.int64]

    @property
    def bias(self) -> Int32:
        return wrap_int32(self.folded).astype(np.int32)

    @property
    def held(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and greatest value that an int32 accumulator ends with."""
        return held_in_int32(self.lowest, self.highest)


def sums_of(
    bias: Int32, filters: Int8, zero_point: int, partial: bool = False, weight_zero_point: int = 0
) -> Sums:
    """The sums of filters [channels, taps]. `partial`: the kernel itself subtracts the zero point,
    and sums some of the taps only.
    """
    total, weight = _weight_sums(filters, weight_zero_point)
    above, below = (weight + total) // 2, (total - weight) // 2  # of positive and negative weights
    low, high, folded = -128, 127, bias.astype(np.int64)
    if partial:
        low, high = low - zero_point, high - zero_point
    else:
        folded = folded - zero_point * total
    return Sums(
        folded,
        folded + low * above + high * below,
        folded + high * above + low * below,
        _largest(bias, total, weight, zero_point, partial),
    )


def _weight_sums(
    filters: Int8, weight_zero_point: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each channel, the sum of its real weights, and of their magnitudes."""
    real = filters.astype(np.int16)
    if weight_zero_point:
        real -= np.int16(weight_zero_point)
    return real.sum(axis=1, dtype=np.int64), np.abs(real).sum(axis=1, dtype=np.int64)


def largest_sums(
    bias: Int32, filters: Int8, zero_point: int, partial: bool, weight_zero_point: int = 0
) -> NDArray[np.int64]:
    """For each channel, a bound on the magnitude of its sums. `filters` are [channels, taps].

    With `partial` the bound also holds for sums of any of the taps.
    """
    total, weight = _weight_sums(filters, weight_zero_point)
    return _largest(bias, total, weight, zero_point, partial)


def _largest(
    bias: Int32,
    total: NDArray[np.int64],
    weight: NDArray[np.int64],
    zero_point: int,
    partial: bool,
) -> NDArray[np.int64]:
    folded, most = bias.astype(np.int64), 128
    if partial:
        most = max(128 + zero_point, 127 - zero_point)
    else:
        folded = folded - zero_point * total
    largest: NDArray[np.int64] = np.abs(folded) + most * weight
    return largest


def scaling(
    bias: Int32,
    filters: Int8,
    zero_point: int,
    multiplier: Int32,
    shift: Int32,
    activation: tuple[int, int],
    output_offset: int,
    partial: bool = False,
    weight_zero_point: int = 0,
) -> Scaling:
    """Scaling by TFLite's `MultiplyByQuantizedMultiplier`, for filters [channels, taps].

    A channel can take the fast form if no int8 input makes its sum reach 2**30 and its right shift
    is 1 to 22. Partial sums may wrap, but the final sum is then right nevertheless. A channel whose
    output is the same for every input (mostly one whose weights are all 0) gets filters of real 0
    and a bias that gives that output in the fast form. Raises ScaleError as `check_sums` does.
    """
    sums = sums_of(bias, filters, zero_point, partial, weight_zero_point)
    check_sums(sums.lowest, sums.highest, multiplier, shift, output_offset)
    ends = [
        np.clip(
            multiply_by_quantized_multiplier(end, multiplier, shift) + output_offset, *activation
        )
        for end in sums.held
    ]
    constant = ends[0] == ends[1]
    right = -shift.astype(np.int64) - 1
    fast = (sums.largest < _SUM_LIMIT) & (right >= 0) & (right <= LARGEST_FAST_SHIFT)
    return Scaling(
        np.where(constant[:, None], weight_zero_point, filters).astype(np.int8),
        np.where(constant, 4 * (ends[0] - output_offset), sums.bias).astype(np.int32),
        np.where(constant, 1 << 30, multiplier).astype(np.int32),
        np.zeros(len(bias), dtype=np.int32),
        np.where(constant, 0, np.where(fast, right, shift - SHIFT_BIAS)).astype(np.int8),
    )


def single_rounding_scaling(
    bias: Int32,
    filters: Int8,
    zero_point: int,
    factors: NDArray[np.float64],
    activation: tuple[int, int],
    output_offset: int,
) -> Scaling | None:
    """Like `scaling`, for kernels that scale in double and round once (`single_rounding`).

    `factors` has one entry for all channels, or one for each. Returns None if no integers give the
    same results.
    """
    sums = sums_of(bias, filters, zero_point)
    span = (activation[0] - output_offset, activation[1] - output_offset)
    held = np.maximum(*(np.abs(end) for end in sums.held))
    beyond = (sums.largest > INT32_MAX) | (sums.largest * factors >= 1 << 31)
    bounds = np.where(beyond, held, sums.largest)
    bounds = bounds if len(factors) > 1 else bounds.max(keepdims=True)
    fits = [
        single_rounding(float(factor), int(bound), *span)
        for factor, bound in zip(factors, bounds, strict=True)
    ]
    known = [fit for fit in fits if fit is not None]
    if len(known) < len(fits):
        return None
    multiplier = np.array([fit.multiplier for fit in known], dtype=np.int32)
    low = np.array([fit.low for fit in known], dtype=np.int32)
    codes = [once_code(fit, int(bound)) for fit, bound in zip(known, bounds, strict=True)]
    code = np.array(codes, dtype=np.int8)
    channels = len(bias)
    return Scaling(
        filters,
        sums.bias,
        np.broadcast_to(multiplier, channels),
        np.broadcast_to(low, channels),
        np.broadcast_to(code, channels),
    )


def once_code(fit: SingleRounding, largest: int) -> int:
    """The shift code of `thimble_requantize_once_s8`, for sums of magnitude up to `largest`."""
    shift = fit.shift if fit.multiplier or fit.low else -1
    right = -shift - 1
    fast = largest < _SUM_LIMIT and not fit.low and 0 <= right <= LARGEST_FAST_SHIFT
    return right if fast else shift - SHIFT_BIAS


def shift_code(multiplier: int, shift: int, largest: int) -> int:
    """The code of one multiplier and shift, if no sum exceeds `largest` in magnitude."""
    right = -shift - 1
    fast = largest < _SUM_LIMIT and 0 <= right <= LARGEST_FAST_SHIFT
    return right if fast else shift - SHIFT_BIAS


def left_shift(code: int) -> int:
    """The left shift, as TFLite counts, that a shift code stands for."""
    return -(code + 1) if code >= 0 else code + SHIFT_BIAS


def folded_bias(bias: Int32, filters: Int8, zero_point: int) -> Int32:
    """The bias of filters [channels, taps] that read the stored input, zero point included."""
    return sums_of(bias, filters, zero_point).bias


def fit_nibbles(filters: Int8) -> bool:
    """Whether every weight fits four bits, and int32 holds 16 times every sum of filters
    [channels, ...] without bias, which their kernels divide by 16: it must not wrap.
    """
    if not filters.size or filters.min() < -8 or filters.max() > 7:
        return False
    _, weight = _weight_sums(filters.reshape(len(filters), -1), 0)
    return bool(16 * 128 * weight.max() <= INT32_MAX)


def as_words(array: NDArray[np.generic]) -> NDArray[np.int32]:
    """The last axis of a byte, int16 or int32 array as little-endian words."""
    little = array.astype(array.dtype.newbyteorder("<"))
    return np.ascontiguousarray(little).view("<i4").astype(np.int32)


def filled_up(
    array: NDArray[np.generic], axis: int, multiple: int, fill: int = 0
) -> NDArray[np.generic]:
    """The array with `fill` at the end of an axis, up to a multiple of elements."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % multiple)
    return np.pad(array, widths, constant_values=fill)


def by_blocks(array: NDArray[np.generic], lanes: int, fill: int = 0) -> NDArray[np.generic]:
    """One row per block of `lanes` channels, the last one filled up with `fill`."""
    return filled_up(array, 0, lanes, fill).reshape(-1, lanes)


def joined(parts: list[NDArray[np.generic]]) -> Int32:
    """Parts [blocks, words], block by block."""
    return np.concatenate(parts, axis=1).reshape(-1).astype(np.int32)


def word_turns(filters: Int8, lanes: int) -> NDArray[np.int32]:
    """Filter words as [blocks, words * lanes]: the lanes of a block take turns, word by word."""
    return _turns(filters, lanes, 4)


def vector_turns(filters: Int8, lanes: int) -> NDArray[np.int32]:
    """As `word_turns`, but the lanes take turns vector by vector, of VECTOR_BYTES."""
    return _turns(filters, lanes, VECTOR_BYTES)


def _turns(filters: Int8, lanes: int, size: int) -> NDArray[np.int32]:
    words = as_words(filled_up(filled_up(filters, 1, size), 0, lanes))
    blocks = words.shape[0] // lanes
    turns = words.reshape(blocks, lanes, -1, size // 4).transpose(0, 2, 1, 3)
    return turns.reshape(blocks, -1)


def nibble_turns(filters: Int8, lanes: int) -> NDArray[np.int32]:
    """Filters as [fours of channels, words], with four `lanes`: of each four taps the first and the
    third, then the second and the fourth. Each half of a word holds a tap's weights of all lanes,
    the first lane's lowest; those of the first and the third lane are plus 8.
    """
    padded = filled_up(filled_up(filters, 1, 4), 0, lanes).astype(np.int64)
    taps = padded.reshape(len(padded) // lanes, lanes, -1, 4)[..., [0, 2, 1, 3]]
    lane = np.arange(lanes).reshape(1, lanes, 1, 1)
    fields = (taps + np.where(lane % 2, 0, 8)) & 15
    halves = (fields << 4 * lane).sum(axis=1).astype(np.uint16)
    return as_words(halves.reshape(len(halves), -1))


def pair_words(filters: Int8) -> NDArray[np.int32]:
    """Filters as [pairs, words]: of each four taps the first and the third of both channels, then
    the second and the fourth, the channels' bytes in turn.
    """
    padded = filled_up(filled_up(filters, 1, 4), 0, 2).reshape(-(-len(filters) // 2), 2, -1, 4)
    turns = padded[..., [0, 2, 1, 3]].transpose(0, 2, 3, 1)
    return as_words(turns.reshape(len(turns), -1))


def pack_sums(filters: Int8, bias: Int32, turns: Turns) -> Int32:
    """For `thimble_partial_fully_connected_s8`: of each four units the biases, then the filters by
    `turns`.
    """
    return joined([by_blocks(bias, 4), turns(filters, 4)])
