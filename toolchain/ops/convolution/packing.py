"""Weights and requantisation in the order in which Thimble's convolution kernels read them.

Every packer returns one array of int32 (little-endian words). The comments in
`runtime_c/include/thimble_conv.h` give its layout. The input's zero point is folded into the bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
_JOINED_SUM_LIMIT = 1 << 23
LARGEST_FAST_SHIFT = 21
"""(2 * 128 + 1) << 21, plus a product below 2**30, still fits int32."""
SUMMED_TAPS = 252
"""THIMBLE_SUMMED_TAPS: so many int8 taps have a sum that fits int16. A multiple of four."""
VECTOR_BYTES = 16
"""THIMBLE_LANES: int8 lanes of a vector of Helium."""
PACKED_SUM, PACKED_TAPS = 255, 9
"""Of a run of `thimble_convolve_packed_s8`: the largest sum of magnitudes, 128 times which is below
2**15, and the most taps."""
SHIFT_ONCE = 256
"""THIMBLE_SHIFT_ONCE: added to the code of a channel that is rounded once."""
SHIFT_BIAS = 64
"""THIMBLE_SHIFT_BIAS: added to the code of a shift that the fast form cannot take."""


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
    found = [fit for fit in fits if fit is not None]
    if len(found) < len(fits):
        return None
    multiplier = np.array([fit.multiplier for fit in found], dtype=np.int32)
    low = np.array([fit.low for fit in found], dtype=np.int32)
    codes = [once_code(fit, int(bound)) for fit, bound in zip(found, bounds, strict=True)]
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


def folded_bias(bias: Int32, filters: Int8, zero_point: int) -> Int32:
    """The bias of filters [channels, taps] that read the stored input, zero point included."""
    return sums_of(bias, filters, zero_point).bias


def _words(array: NDArray[np.generic]) -> NDArray[np.int32]:
    """The last axis of a byte, int16 or int32 array as little-endian words."""
    little = array.astype(array.dtype.newbyteorder("<"))
    return np.ascontiguousarray(little).view("<i4").astype(np.int32)


def _pad(
    array: NDArray[np.generic], axis: int, multiple: int, fill: int = 0
) -> NDArray[np.generic]:
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % multiple)
    return np.pad(array, widths, constant_values=fill)


def _lanes(array: NDArray[np.generic], lanes: int, fill: int = 0) -> NDArray[np.generic]:
    """One row per block of `lanes` channels, the last one filled up with `fill`."""
    return _pad(array, 0, lanes, fill).reshape(-1, lanes)


def word_turns(filters: Int8, lanes: int) -> NDArray[np.int32]:
    """Filter words as [blocks, words * lanes]: the lanes of a block take turns, word by word."""
    return _turns(filters, lanes, 4)


def vector_turns(filters: Int8, lanes: int) -> NDArray[np.int32]:
    """As `word_turns`, but the lanes take turns vector by vector, of VECTOR_BYTES."""
    return _turns(filters, lanes, VECTOR_BYTES)


def _turns(filters: Int8, lanes: int, size: int) -> NDArray[np.int32]:
    words = _words(_pad(_pad(filters, 1, size), 0, lanes))
    blocks = words.shape[0] // lanes
    turns = words.reshape(blocks, lanes, -1, size // 4).transpose(0, 2, 1, 3)
    return turns.reshape(blocks, -1)


def _joined(parts: list[NDArray[np.generic]]) -> Int32:
    return np.concatenate(parts, axis=1).reshape(-1).astype(np.int32)


def _pairs(filters: Int8) -> NDArray[np.int32]:
    """Filters as [pairs, words]: of each four taps the first and the third of both channels, then
    the second and the fourth, the channels' bytes in turn.
    """
    padded = _pad(_pad(filters, 1, 4), 0, 2).reshape(-(-len(filters) // 2), 2, -1, 4)
    turns = padded[..., [0, 2, 1, 3]].transpose(0, 2, 3, 1)
    return _words(turns.reshape(len(turns), -1))


def pack_convolution(filters: Int8, ending: Ending, groups: int) -> Int32:
    """For `thimble_convolve_s8`. The channels of a group are adjacent. The code of a channel that
    fills up a pair says that the pair has no fast form.
    """
    per_group = len(filters) // groups
    parts = []
    for group in range(groups):
        own = slice(group * per_group, (group + 1) * per_group)
        parts.append(
            _joined(
                [
                    _lanes(ending.bias[own], 2),
                    _pairs(filters[own]),
                    _lanes(ending.multiplier[own], 2),
                    _words(_lanes(ending.code[own], 2, fill=-SHIFT_BIAS)),
                    _lanes(ending.rounding[own], 2),
                ]
            )
        )
    return np.concatenate(parts)


def _four_turns(filters: Int8) -> NDArray[np.int32]:
    """Filters as [fours of channels, words]: the first and the third take turns vector by vector,
    then the second and the fourth.
    """
    blocks = -(-len(filters) // 4)
    fours = _pad(filters, 0, 4).reshape(blocks, 4, -1)[:, [0, 2, 1, 3]]
    return vector_turns(fours.reshape(4 * blocks, -1).astype(np.int8), 2).reshape(blocks, -1)


def pack_convolution_lanes(filters: Int8, ending: Ending) -> Int32:
    """For `thimble_convolve_lanes_s8` and its `_offset_`; `filters` are [channels, taps]."""
    return _joined([_four_turns(filters), _lane_scaling(ending)])


def pack_sums_lanes(filters: Int8, bias: Int32) -> Int32:
    """For `thimble_partial_conv_lanes_s8`; `filters` are [channels, taps]."""
    biases = _lanes(bias, 4).reshape(-1)
    return np.concatenate([biases, _four_turns(filters).reshape(-1)]).astype(np.int32)


def _lane_scaling(ending: Ending) -> NDArray[np.int32]:
    """[blocks, 13]: biases, multipliers, rounding terms and codes of each four channels. The codes
    of channels that fill up a block are like its last one's."""
    codes = np.pad(ending.code.astype(np.int8), (0, -len(ending.code) % 4), mode="edge")
    parts = [_lanes(part, 4) for part in (ending.bias, ending.multiplier, ending.rounding)]
    return np.concatenate([*parts, _words(codes.reshape(-1, 4))], axis=1).astype(np.int32)


def with_window_sums(filters: Int8, weight_zero_point: int) -> Int8:
    """Filters [channels, taps] followed by the lanes that `thimble_sum_columns_s8` multiplies.

    Each lane is minus the sum of at most SUMMED_TAPS taps. Times the weights' zero point, the sum
    of all taps is what that zero point adds to every channel.
    """
    if weight_zero_point == 0:
        return filters
    padded = _pad(filters, 1, 4)
    lanes = 4 * -(-padded.shape[1] // (4 * SUMMED_TAPS))
    factors = np.full((len(filters), lanes), weight_zero_point, np.int8)
    return np.concatenate([padded, factors], axis=1).astype(np.int8)


def packed_runs(filters: Int8) -> tuple[int, ...]:
    """Where the runs of at most four channels [channels, taps] end, as `thimble_convolve_packed_s8`
    cuts them: no sum of a channel's magnitudes in a run exceeds PACKED_SUM.
    """
    sums = np.abs(filters.astype(np.int64)).cumsum(axis=1)
    ends, taps = [0], filters.shape[1]
    while ends[-1] < taps:
        begin = ends[-1]
        before = sums[:, begin - 1] if begin else np.zeros(len(sums), np.int64)
        window = sums[:, begin : begin + PACKED_TAPS] - before[:, None]
        ends.append(begin + int((window <= PACKED_SUM).all(axis=0).sum()))
    return tuple(ends[1:])


def pack_packed(scales: Scaling) -> Int32:
    """For `thimble_convolve_packed_s8`."""
    biases, multipliers = _lanes(scales.bias, 4), _lanes(scales.multiplier, 4)
    codes = _words(_lanes(scales.code, 4))
    filters = _pad(scales.filters, 0, 4).reshape(-1, 4, scales.filters.shape[1]).astype(np.int8)
    parts = []
    for block, own in enumerate(filters):
        ends = packed_runs(own)
        parts += [biases[block], multipliers[block], codes[block]]
        words = _words(np.ascontiguousarray(own.T))[:, 0]
        for begin, end in zip((0, *ends), ends, strict=False):
            parts += [words[begin : begin + 1], [end - begin - 1], words[begin + 1 : end]]
    return np.concatenate(parts).astype(np.int32)


def pack_pair_sums(filters: Int8, bias: Int32) -> Int32:
    """For `thimble_partial_conv_s8`: of each two channels the biases, then the filters."""
    return _joined([_lanes(bias, 2), _pairs(filters)])


def pack_sums(filters: Int8, bias: Int32, turns: Turns) -> Int32:
    """For `thimble_partial_fully_connected_s8`: of each four units the biases, then the filters by
    `turns`.
    """
    return _joined([_lanes(bias, 4), turns(filters, 4)])


def pack_transposed(scales: Scaling, taps: int) -> Int32:
    """For `thimble_transpose_conv_s8`. The depth of each tap is padded to whole words."""
    channels = len(scales.bias)
    filters = _words(_pad(scales.filters.reshape(channels, taps, -1), 2, 4))
    heads = np.stack([scales.bias, scales.multiplier, scales.code.astype(np.int32)], axis=1)
    return _joined([heads, filters.reshape(channels, -1)])


def transposed_parts(filters: Int8, stride: tuple[int, int]) -> list[Int8]:
    """Of filters [channels, rows, columns, depth] of a transposed convolution those of the ordinary
    ones whose outputs agree modulo the strides, row by row: every `stride`th tap, the last first;
    one of zeros where there is none.
    """
    channels, _, _, depth = filters.shape
    parts = []
    for down in range(stride[0]):
        for across in range(stride[1]):
            part = filters[:, down :: stride[0], across :: stride[1]][:, ::-1, ::-1]
            rows, columns = max(part.shape[1], 1), max(part.shape[2], 1)
            if not part.size:
                part = np.zeros((channels, rows, columns, depth), np.int8)
            parts.append(part)
    return parts


def shift_code(multiplier: int, shift: int, largest: int) -> int:
    """The code of one multiplier and shift, if no sum exceeds `largest` in magnitude."""
    right = -shift - 1
    fast = largest < _SUM_LIMIT and 0 <= right <= LARGEST_FAST_SHIFT
    return right if fast else shift - SHIFT_BIAS


def left_shift(code: int) -> int:
    """The left shift, as TFLite counts, that a shift code stands for."""
    return -(code + 1) if code >= 0 else code + SHIFT_BIAS


def pack_depthwise(filters: Int8, ending: Ending) -> Int32:
    """For `thimble_depthwise_conv_s8`."""
    taps = np.concatenate([ending.code.astype(np.int8)[:, None], filters], axis=1)
    heads = np.stack([ending.bias, ending.multiplier, ending.rounding], axis=1)
    return _joined([heads, _words(_pad(taps, 1, 4))])


def _halves(values: Int32) -> Int8:
    """The bytes of values as int16, little-endian: [values, 2]."""
    return values.astype("<i2").view(np.int8).reshape(-1, 2)


def pack_depthwise_3x3(scales: Scaling, ending: Ending) -> Int32:
    """For `thimble_depthwise_3x3_s8` and its like."""
    taps = scales.filters
    return _joined(
        [
            np.stack([ending.bias, ending.multiplier], axis=1),
            _words(taps[:, [0, 3, 1, 4]]),
            _words(np.stack([taps[:, 6], ending.code.astype(np.int8), taps[:, 7], taps[:, 2]], 1)),
            _words(np.concatenate([_halves(ending.rounding), taps[:, [5, 8]]], axis=1)),
        ]
    )


def pack_raised_blocks(filters: Int8, ending: Ending) -> Int32:
    """For `thimble_depthwise_conv_blocks_s8`, which takes four channels at a time."""
    blocks = filters.reshape(-1, 4, filters.shape[1]).transpose(0, 2, 1)
    return _joined(
        [
            ending.bias.reshape(-1, 4),
            ending.multiplier.reshape(-1, 4),
            _words(ending.code.astype(np.int8).reshape(-1, 4)),
            ending.rounding.reshape(-1, 4),
            _words(blocks).reshape(len(blocks), -1),
        ]
    )


def pack_depthwise_lanes(filters: Int8, ending: Ending) -> Int32:
    """For `thimble_depthwise_lanes_s8`; `filters` are [channels, taps]."""
    blocks = filters.reshape(-1, 4, filters.shape[1]).transpose(0, 2, 1)
    return _joined([_lane_scaling(ending), _words(blocks).reshape(len(blocks), -1)])


def pack_windows_lanes(filters: Int8, ending: Ending) -> Int32:
    """For `thimble_depthwise_windows_lanes_s8`; `filters` are [channels, rows, columns], and their
    columns become words."""
    columns = _words(_pad(filters.transpose(0, 2, 1), 2, 4))
    return _joined([_lane_scaling(ending), columns.reshape(len(filters) // 4, -1)])


def fit_nibbles(filters: Int8) -> bool:
    """Whether every weight fits four bits, and int32 holds 16 times every sum of filters
    [channels, ...] without bias, which their kernels divide by 16: it must not wrap.
    """
    if not filters.size or filters.min() < -8 or filters.max() > 7:
        return False
    _, weight = _weight_sums(filters.reshape(len(filters), -1), 0)
    return bool(16 * 128 * weight.max() <= INT32_MAX)


def nibble_turns(filters: Int8, lanes: int) -> NDArray[np.int32]:
    """Filters as [fours of channels, words], with four `lanes`: of each four taps the first and the
    third, then the second and the fourth. Each half of a word holds a tap's weights of all lanes,
    the first lane's lowest; those of the first and the third lane are plus 8.
    """
    padded = _pad(_pad(filters, 1, 4), 0, lanes).astype(np.int64)
    taps = padded.reshape(len(padded) // lanes, lanes, -1, 4)[..., [0, 2, 1, 3]]
    lane = np.arange(lanes).reshape(1, lanes, 1, 1)
    fields = (taps + np.where(lane % 2, 0, 8)) & 15
    halves = (fields << 4 * lane).sum(axis=1).astype(np.uint16)
    return _words(halves.reshape(len(halves), -1))


def nibble_vector_turns(filters: Int8, lanes: int) -> NDArray[np.int32]:
    """As `vector_turns`, two lanes in a byte: four bits of the second lane above those of the first
    plus 8, then the third and the fourth likewise.
    """
    padded = _pad(_pad(filters, 1, VECTOR_BYTES), 0, lanes).astype(np.int64)
    both = ((padded[1::2] << 4) + padded[::2] + 8).astype(np.int8)
    return vector_turns(both, lanes // 2)


_ENDS_TWICE, _ENDS_ONCE, _ENDS_ANYHOW, _ENDS_PART_ONCE = 1, 2, 0, -1
"""THIMBLE_ENDS_..."""


def pack_convolution_s4(filters: Int8, ending: Ending, groups: int, narrow: bool) -> Int32:
    """For `thimble_convolve_s4`. The channels of a group are adjacent. With `narrow` outputs are
    clamped to less than the range of int8.
    """
    per_group = len(filters) // groups
    parts = []
    for group in range(groups):
        own = slice(group * per_group, (group + 1) * per_group)
        bias, code = _lanes(ending.bias[own], 4), ending.code[own]
        whole = np.arange(len(bias)) < per_group // 4
        once = _lanes(code >= SHIFT_ONCE, 4, fill=1).all(axis=1)
        quick = whole & (_lanes(code, 4).min(axis=1) >= 0) & (not narrow)
        ends = np.where(
            once,
            np.where(whole, _ENDS_ONCE, _ENDS_PART_ONCE),
            np.where(quick, _ENDS_TWICE, _ENDS_ANYHOW),
        )
        parts.append(
            _joined(
                [
                    bias[:, ::2],
                    nibble_turns(filters[own], 4),
                    bias[:, 1::2],
                    _lanes(ending.multiplier[own], 4),
                    _lanes(ending.rounding[own], 4),
                    _words(_lanes((code % SHIFT_ONCE).astype(np.uint8), 4)),
                    ends[:, None],
                ]
            )
        )
    return np.concatenate(parts)


def fit_joined(filters: Int8, largest: NDArray[np.int64]) -> bool:
    """Whether filters [units, taps], whose sums with bias are at most `largest`, can be joined two
    by two (`thimble_fully_connected_joined_s8`).
    """
    wide = _pad(filters, 0, 4).astype(np.int64)
    joined = 256 * wide[1::2] + wide[::2]
    fits = bool((joined >= -(1 << 15)).all() and (joined < 1 << 15).all())
    return fits and bool((largest[1::2] < _JOINED_SUM_LIMIT).all())


def pack_joined(scales: Scaling, common: bool) -> Int32:
    """For `thimble_fully_connected_joined_s8`.

    With `common` all units have one scaling, which is a separate argument (`pack_common_scaling`).
    """
    wide = _pad(_pad(scales.filters, 1, 4), 0, 4).astype(np.int64)
    bias = _pad(scales.bias, 0, 4).astype(np.int64)
    pairs = (wide[::2, ::2] * wide[::2, 1::2]).sum(axis=1)
    heads = np.stack((bias[::2] - pairs, 256 * bias[1::2] + bias[::2]), axis=1)
    joined = (256 * wide[1::2] + wide[::2]).astype(np.int16)
    taps = joined.reshape(len(wide) // 4, 2, -1, 4)[..., [0, 2, 1, 3]]
    turns = _words(taps.transpose(0, 2, 1, 3).reshape(len(taps), -1))
    parts: list[NDArray[np.generic]] = [_lanes(heads.reshape(-1).astype(np.int32), 4), turns]
    return _joined(parts if common else parts + _fully_connected_scaling(scales))


def pack_fully_connected(scales: Scaling, common: bool, turns: Turns) -> Int32:
    """For `thimble_fully_connected_s8`, and those beside it whose filters take other `turns`.

    With `common` all units have one scaling, which is a separate argument (`pack_common_scaling`).
    """
    parts: list[NDArray[np.generic]] = [_lanes(scales.bias, 4), turns(scales.filters, 4)]
    return _joined(parts if common else parts + _fully_connected_scaling(scales))


def pack_common_scaling(scales: Scaling) -> Int32:
    """The `common` argument of `thimble_fully_connected_s8`."""
    four = np.zeros(4, dtype=np.int64)
    return _joined(
        _fully_connected_scaling(
            Scaling(
                scales.filters[:1],
                scales.bias[:1],
                scales.multiplier[four],
                scales.low[four],
                scales.code[four],
            )
        )
    )


def _fully_connected_scaling(scales: Scaling) -> list[NDArray[np.generic]]:
    return [
        _lanes(scales.multiplier, 4),
        _lanes(scales.low, 4),
        _words(_lanes(scales.code, 4)),
    ]
