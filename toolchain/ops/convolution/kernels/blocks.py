"""Parts of the kernels that take channels in blocks: two, or four with weights of four bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import endings, parts
from toolchain.ops.convolution.common import Convolution, depth_of, filters_of, weight_zero_point
from toolchain.ops.convolution.kernels import windows
from toolchain.ops.convolution.overlaps import gathered_overlap

SUMMED_TAPS = kit.defined("source/convolution/thimble_columns.h", "THIMBLE_SUMMED_TAPS")
"""So many int8 taps have a sum that fits int16. A multiple of four."""
_LEAST_INT8 = -128


@dataclass(frozen=True)
class Gathered:
    """The work of a kernel before it multiplies: `terms`, and `pixels` windows of so many words, in
    each of `times` runs.
    """

    terms: windows.Counts
    times: int
    pixels: int
    words: int


@dataclass(frozen=True)
class Width:
    """How wide weights are in flash.

    bits     of a weight.
    lanes    channels of a block.
    at_once  how many windows may be expanded at once, quickest first.
    filters  what they are called in the generated C.
    pack     filters [channels, taps], those of a group adjacent, with what follows their sums.
    parameter_bytes  of channels of so many taps, whole words.
    terms    all terms of a kernel with so many groups, which expands so many windows at once.
    """

    bits: int
    lanes: int
    at_once: tuple[int, ...]
    filters: str
    pack: Callable[[kit.Operator[Any], packing.Int8, packing.Ending, int], kit.Int32]
    parameter_bytes: Callable[[int, int], int]
    terms: Callable[[kit.Operator[Any], Gathered, int, int], kit.Terms]


def _pack_pairs(
    op: kit.AnyOperator, filters: packing.Int8, ending: packing.Ending, groups: int
) -> kit.Int32:
    """The code of a channel that fills up a pair says that the pair has no fast form."""
    wide = with_window_sums(filters, weight_zero_point(op.input(kit.WEIGHTS)))
    parts = []
    for group in _groups(len(filters), groups):
        parts.append(
            packing.joined(
                [
                    packing.by_blocks(ending.bias[group], 2),
                    packing.pair_words(wide[group]),
                    packing.by_blocks(ending.multiplier[group], 2),
                    packing.as_words(
                        packing.by_blocks(ending.code[group], 2, fill=-packing.SHIFT_BIAS)
                    ),
                    packing.by_blocks(ending.rounding[group], 2),
                ]
            )
        )
    return np.concatenate(parts)


def _pair_bytes(channels: int, taps: int) -> int:
    return 4 * -(-channels // 2) * (2 + 2 * taps // 4 + 5)


def _pair_terms(
    op: kit.Operator[Convolution], gathered: Gathered, groups: int, at_once: int
) -> kit.Terms:
    """The last windows, if they are fewer than `at_once`, are computed as if they were as many,
    but one alone.
    """
    times, pixels, words = gathered.times, gathered.pixels, gathered.words
    filters = op.y.shape[3] // groups
    lone = filters % 2
    path, slow = kit.slow_channels(op, once=True)
    beside = slow.reshape(groups, filters)[:, : filters - lone].reshape(-1, 2).any(axis=1)
    slow_blocks = int(beside.sum()) / groups
    blocks = filters // 2 - slow_blocks
    runs, odd = pixels // at_once + (pixels % at_once > 1), int(pixels % at_once == 1)
    of = f" of {at_once} pixels"
    return gathered.terms | {
        f"{path} block": times * pixels * slow_blocks,
        f"{path} block word": times * pixels * slow_blocks * words,
        "pixel": times * pixels,
        f"run{of}": times * runs,
        f"block{of}": times * runs * blocks,
        f"block word{of}": times * runs * blocks * words,
        f"lone channel{of}": times * runs * lone,
        f"lone channel word{of}": times * runs * lone * words,
        "last pixel": times * odd,
        "last pixel block": times * odd * blocks,
        "last pixel block word": times * odd * blocks * words,
        "last pixel lone channel": times * odd * lone,
        "last pixel lone channel word": times * odd * lone * words,
        f"block rounded twice{of}": times * runs * blocks * _rounded_twice(op),
        f"narrow block{of}": times * runs * blocks * kit.is_narrow(op),
        "narrow last pixel block": times * odd * blocks * kit.is_narrow(op),
    }


_S4 = "source/convolution/thimble_columns_s4.h"
_FOUR_SCALING = kit.defined(_S4, "THIMBLE_FOUR_SCALING")
"""Words of the scaling of four channels, after their filters and biases."""
_ONCE, _PART_ONCE, _TWICE, _ANYHOW = (
    kit.defined(_S4, f"THIMBLE_ENDS_{how}") for how in ("ONCE", "PART_ONCE", "TWICE", "ANYHOW")
)
"""How the sums of four channels end."""


def _pack_fours(
    op: kit.AnyOperator, filters: packing.Int8, ending: packing.Ending, groups: int
) -> kit.Int32:
    whole_blocks = len(filters) // groups // 4
    parts = []
    for group in _groups(len(filters), groups):
        bias, code = packing.by_blocks(ending.bias[group], 4), ending.code[group]
        whole = np.arange(len(bias)) < whole_blocks
        once = packing.by_blocks(code >= packing.SHIFT_ONCE, 4, fill=1).all(axis=1)
        quick = whole & (packing.by_blocks(code, 4).min(axis=1) >= 0) & (not kit.is_narrow(op))
        ends = np.where(once, np.where(whole, _ONCE, _PART_ONCE), np.where(quick, _TWICE, _ANYHOW))
        parts.append(
            packing.joined(
                [
                    bias[:, ::2],
                    packing.nibble_turns(filters[group], 4),
                    bias[:, 1::2],
                    packing.by_blocks(ending.multiplier[group], 4),
                    packing.by_blocks(ending.rounding[group], 4),
                    packing.as_words(
                        packing.by_blocks((code % packing.SHIFT_ONCE).astype(np.uint8), 4)
                    ),
                    ends[:, None],
                ]
            )
        )
    return np.concatenate(parts)


def _four_bytes(channels: int, taps: int) -> int:
    return 4 * -(-channels // 4) * (4 + 2 * taps // 4 + _FOUR_SCALING)


def _four_terms(
    op: kit.Operator[Convolution], gathered: Gathered, groups: int, at_once: int
) -> kit.Terms:
    """The last block of a group may be smaller than four channels."""
    times, pixels, words = gathered.times, gathered.pixels, gathered.words
    channels = op.y.shape[3] // groups
    pairs, odd, lone = pixels // 2, pixels % 2, channels % 4
    path, slow = kit.slow_channels(op, once=True)
    beside = slow.reshape(groups, channels)[:, : channels - lone].reshape(-1, 4).any(axis=1)
    slow_blocks = int(beside.sum()) / groups
    blocks = -(-channels // 4)
    narrow = (channels // 4 - slow_blocks) * kit.is_narrow(op)
    return gathered.terms | {
        "pixel": times * pixels,
        "pair of pixels": times * pairs,
        "pair of pixels word": times * pairs * words,
        "block": times * pairs * blocks,
        "block rounded twice": times * pairs * blocks * _rounded_twice(op),
        "block word": times * pairs * blocks * words,
        "narrow block": times * pairs * narrow,
        "lone channel": times * pairs * lone,
        f"{path} block": times * pairs * slow_blocks,
        "last pixel": times * odd,
        "last pixel word": times * odd * words,
        "last pixel block": times * odd * blocks,
        "last pixel block word": times * odd * blocks * words,
    }


EIGHT_BITS = Width(8, 2, (4, 3, 2), "filters", _pack_pairs, _pair_bytes, _pair_terms)
FOUR_BITS = Width(4, 4, (4, 2), "four-bit filters", _pack_fours, _four_bytes, _four_terms)


def _groups(channels: int, groups: int) -> list[slice]:
    each = channels // groups
    return [slice(group * each, (group + 1) * each) for group in range(groups)]


def _rounded_twice(op: kit.Operator[Convolution]) -> bool:
    """Whether most sums are: TFLite's rounding, of outputs that may be below their zero point."""
    tflite = op.attributes.rounding is kit.Rounding.TFLITE
    return tflite and op.y.q.zero_point > _LEAST_INT8


def with_window_sums(filters: packing.Int8, weight_zero_point: int) -> packing.Int8:
    """Filters [channels, taps] followed by the lanes that `thimble_sum_columns_s8` multiplies.

    Each lane is minus the sum of at most SUMMED_TAPS taps. Times the weights' zero point, the sum
    of all taps is what that zero point adds to every channel.
    """
    if weight_zero_point == 0:
        return filters
    padded = packing.filled_up(filters, 1, 4)
    lanes = 4 * -(-padded.shape[1] // (4 * SUMMED_TAPS))
    factors = np.full((len(filters), lanes), weight_zero_point, np.int8)
    return np.concatenate([padded, factors], axis=1).astype(np.int8)


def blocked_kernel(
    op: kit.Operator[Convolution],
    functions: Mapping[int, str],
    window: kit.Window,
    width: Width,
    *,
    calls: Callable[[int, tuple[int, int]], kit.Call],
    scratch_bytes: Callable[[int], int],
    gathered: Callable[[], Gathered],
    extents: Callable[[kit.Touched], kit.Extents],
    batches_join: bool = False,
) -> kit.Kernel:
    """A kernel that takes filters by blocks of channels, by the function for the bits of a weight.

    `calls` and `scratch_bytes` are called with how many windows are expanded at once; `calls` also
    with the bytes from row to row of input and output. With `batches_join` the windows of all
    batches are one run.
    """
    x, weights, y, filters = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y, filters_of(op)
    groups = x.shape[3] // depth_of(filters, window)
    scales = parts.scaled(op, filters)

    def packed() -> kit.Int32:
        scaling, zero_point = scales(), weight_zero_point(weights)
        clamp = kit.clamp_range(op.attributes.activation, y)
        ending = endings.block_endings(
            scaling, y.q.zero_point, clamp, zero_point, groups, width.lanes
        )
        return width.pack(op, scaling.filters, ending, groups)

    constants = (parts.parameters(op, functions[width.bits], packed, width.filters),)

    def overlaps(at_once: int) -> tuple[kit.SafeOverlap, ...]:
        """None for groups, which each read the whole image."""
        return () if groups > 1 else gathered_overlap(op, window, at_once, batches_join)

    def kernel(at_once: int) -> kit.Kernel:
        return kit.Kernel(
            (calls(at_once, (0, 0)),),
            extents,
            constants=constants,
            scratch_bytes=scratch_bytes(at_once),
            strided=parts.strided_image(op),
            calls_with_gaps=lambda *lines: (calls(at_once, lines),),
            find_overlaps=lambda: overlaps(at_once),
            find_terms=lambda: width.terms(op, gathered(), groups, at_once),
            form=f"{at_once} at once" if at_once > width.at_once[-1] else "",
        )

    pixels = y.shape[1] * y.shape[2] * (y.shape[0] if batches_join else 1)
    *more, least = width.at_once
    useful = [at_once for at_once in more if pixels > least]
    return replace(
        kernel(least), more_scratch=cache(lambda: tuple(kernel(at_once) for at_once in useful))
    )
