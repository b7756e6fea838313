"""How the sums of blocks of channels end: rounded once where that is proved to be the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.high_word import (
    DOUBLED_SMMLAR,
    SMMLA,
    HighWord,
    Words,
    begins_in_float32,
    begins_in_tflite,
    high_word,
    steered,
    within_float32,
)
from toolchain.ops.arithmetic.onnx_rounding import FLOAT_CODE

_LANES = "source/convolution/thimble_requantize_lanes.h"
_LANE_TOP, _LANE_FAST = (
    kit.defined(_LANES, "THIMBLE_LANE_TOP"),
    kit.defined(_LANES, "THIMBLE_LANE_FAST"),
)
CODE_ONCE = kit.defined("include/thimble_conv.h", "THIMBLE_CODE_ONCE")
"""The code of a channel that is rounded once, by a depthwise kernel for 3x3."""
ONCE_RIGHT = 3
"""By how much CODE_ONCE shifts right: SSAT's own shift."""
_FEWEST_BITS = 20
"""So many bits fewer a multiplier of 31 may have."""
_INT8 = (-128, 127)


def block_endings(
    scales: packing.Scaling,
    offset: int,
    activation: tuple[int, int],
    weight_zero_point: int,
    groups: int,
    lanes: int,
) -> packing.Ending:
    """The numbers behind the filters of each channel, in the parameters of `thimble_convolve_s8`,
    whose blocks have two channels, or of `thimble_convolve_s4`, whose blocks have four (`lanes`).

    All channels of a block are rounded once, or none.
    """
    plain = _twice(scales, offset)
    if activation != _INT8:
        return plain
    step = _steps(scales, offset, weight_zero_point)
    quick = step.known & (step.right >= 2) & (step.right <= packing.LARGEST_FAST_SHIFT + 1)
    right = np.where(quick, step.right, 2)
    multiplier, once = step.once(step.multiplier, right + 31, offset)
    exact = _all(quick & once.exact, groups, lanes)
    added, code = scales.bias + once.added, packing.SHIFT_ONCE + right - 2
    return _where(exact, (added, multiplier, code, once.rounding), plain)


def lane_endings(
    scales: packing.Scaling, offset: int, activation: tuple[int, int], weight_zero_point: int
) -> packing.Ending:
    """`block_endings` for kernels that take four channels in a vector: all four are rounded once,
    or none.
    """
    ending = block_endings(scales, offset, activation, weight_zero_point, 1, 4)
    top = np.where(
        ending.code >= packing.SHIFT_ONCE, _LANE_TOP + packing.SHIFT_ONCE, _LANE_TOP + _LANE_FAST
    )
    code = np.where(ending.code >= 0, top - ending.code, ending.code)
    return replace(ending, code=code.astype(np.int16))


def channel_endings(scales: packing.Scaling, offset: int, weight_zero_point: int) -> packing.Ending:
    """The numbers that end each channel's sums in `thimble_depthwise_3x3_s8`'s parameters, before
    an activation.

    The multiplier of a channel that is rounded once has fewer bits, so that all shift alike.
    """
    step = _steps(scales, offset, weight_zero_point)
    more = step.right - ONCE_RIGHT
    quick = step.known & (more >= 0) & (more < _FEWEST_BITS)
    more = np.where(quick, more, 0)
    multiplier = (step.multiplier + (np.int64(1) << more >> 1)) >> more
    k = np.full_like(more, ONCE_RIGHT + 31)
    multiplier, once = step.once(multiplier, k, offset)
    exact = quick & once.exact & (np.abs(once.rounding) < 1 << 15) & (multiplier < 1 << 31)
    plain = replace(_twice(scales, offset), rounding=np.zeros(len(scales.bias), np.int32))
    ended = scales.bias + once.added, multiplier, np.int64(CODE_ONCE), once.rounding
    return _where(exact, ended, plain)


def raised_endings(
    scales: packing.Scaling, offset: int, activation: tuple[int, int], weight_zero_point: int = 0
) -> packing.Ending:
    """The numbers that end each channel's sums in the parameters of `thimble_convolve_winograd_s8`,
    `thimble_depthwise_conv_s8` and `thimble_depthwise_conv_blocks_s8`.

    These kernels have TFLite's two roundings (`thimble_requantize_doubled`), with an addend of
    their own for negative sums. The bias of a channel with a float factor is raised until there are
    none, if one rounding is then the same; else it keeps the factor, and the rounding term is the
    offset.
    """
    plain = _twice(scales, offset)
    if activation != _INT8 or (scales.code != FLOAT_CODE).any():
        return plain
    step = _steps(scales, offset, weight_zero_point)
    quick = step.known & (step.right >= 1) & (step.right <= packing.LARGEST_FAST_SHIFT + 1)
    right, raised = np.where(quick, step.right, 2), np.maximum(-step.reach[0], 0)
    step = replace(
        step,
        begins=step.begins + raised[:, None],
        reach=(step.reach[0] + raised, step.reach[1] + raised),
    )
    multiplier, once = step.once(step.multiplier, right + 31, offset, DOUBLED_SMMLAR)
    exact = quick & once.exact
    added = scales.bias + raised + once.added
    return _where(exact, (added, multiplier, right - 1, once.rounding), plain)


def _twice(scales: packing.Scaling, offset: int) -> packing.Ending:
    """The endings of sums that are rounded twice, as TFLite does, or scaled in float."""
    code = scales.code.astype(np.int64)
    rounding = np.where(code >= 0, (2 * offset + 1) << np.maximum(code, 0), offset)
    return packing.Ending(
        scales.bias, scales.multiplier, code.astype(np.int16), rounding.astype(np.int32)
    )


def _where(
    exact: NDArray[np.bool_], once: tuple[NDArray[np.int64] | np.int64, ...], plain: packing.Ending
) -> packing.Ending:
    """Bias, multiplier, code and rounding term of `once` where they are exact, else `plain`."""
    bias, multiplier, code, rounding = once
    return packing.Ending(
        np.where(exact, bias, plain.bias).astype(np.int32),
        np.where(exact, multiplier, plain.multiplier).astype(np.int32),
        np.where(exact, code, plain.code).astype(np.int16),
        np.where(exact, rounding, plain.rounding).astype(np.int32),
    )


@dataclass(frozen=True)
class _Steps:
    """For each channel where its output values begin, and the sums that int8 inputs reach. `right`
    and `multiplier` are TFLite's, or, `in_float`, those that ONNX Runtime's float factor is nearest
    to. `known`: whether all this is.
    """

    in_float: bool

    known: NDArray[np.bool_]
    multiplier: NDArray[np.int64]
    right: NDArray[np.int64]
    begins: NDArray[np.int64]
    values: NDArray[np.int64]
    reach: tuple[NDArray[np.int64], NDArray[np.int64]]

    def once(
        self,
        multiplier: NDArray[np.int64],
        k: NDArray[np.int64],
        offset: int,
        words: Words = SMMLA,
    ) -> tuple[NDArray[np.int64], HighWord]:
        """Multipliers with which sums are rounded once, and their constants. Channels of float
        factors are steered.
        """
        problem = (k, self.begins, self.values, self.reach)
        if self.in_float:
            multiplier = steered(multiplier, *problem, words)
        return multiplier, high_word(multiplier, *problem, offset, words)


def _steps(scales: packing.Scaling, offset: int, weight_zero_point: int) -> _Steps:
    code = scales.code.astype(np.int64)
    wide = scales.filters.reshape(len(code), -1).astype(np.int64) - weight_zero_point
    lowest = scales.bias + np.minimum(-128 * wide, 127 * wide).sum(axis=1)
    highest = scales.bias + np.maximum(-128 * wide, 127 * wide).sum(axis=1)
    values = np.arange(_INT8[0] + 1 - offset, _INT8[1] + 1 - offset, dtype=np.int64)
    in_float = bool((code == FLOAT_CODE).all())
    if in_float:
        factors = scales.multiplier.view(np.float32)
        pairs = [kit.quantize_multiplier(float(factor)) for factor in factors]
        multiplier, shift = (
            np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True)
        )
        right = -shift
        begins, known = begins_in_float32(factors, values)
        known &= within_float32(lowest, highest) & (multiplier > 0)
    else:
        multiplier, right = scales.multiplier.astype(np.int64), code + 1
        known = code >= 0
        begins = begins_in_tflite(
            np.maximum(multiplier, 1), np.clip(right, 1, packing.LARGEST_FAST_SHIFT + 1), values
        )
    return _Steps(in_float, known, multiplier, right, begins, values, (lowest, highest))


def _all(exact: NDArray[np.bool_], groups: int, lanes: int) -> NDArray[np.bool_]:
    """Whether all channels of a channel's block are; the last block of a group may be smaller."""
    rows = exact.reshape(groups, -1)
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % lanes)), constant_values=True)
    blocks = padded.reshape(groups, -1, lanes).all(axis=2)
    return np.repeat(blocks, lanes, axis=1)[:, : rows.shape[1]].reshape(-1)
