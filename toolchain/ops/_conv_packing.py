"""Weights and requantisation in the order in which the runtime's convolution kernels read them.

Every packer gives one int32 array (little-endian words), laid out as the comments of
`runtime_c/include/thimble_conv.h` say. The input's zero point is folded into the bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops._fixed_point import Int32
from toolchain.ops._single_rounding import single_rounding

Int8 = NDArray[np.int8]

_SUM_LIMIT = 1 << 30
_LARGEST_FAST_SHIFT = 21
"""(2 * 128 + 1) << 21 plus a product below 2**30 stays inside int32."""


@dataclass(frozen=True)
class Scaling:
    """Bias, multiplier and shift per channel, in the form that `thimble_requant` names."""

    bias: Int32
    multiplier: Int32
    shift: Int8
    form: str


def scaling(
    bias: Int32,
    weights: Int8,
    zero_point: int,
    multiplier: Int32,
    shift: Int32,
    activation: tuple[int, int],
) -> Scaling:
    """Choose the form for filters given as [channels, taps].

    The fast form needs, on every channel: no sum that an int8 input can produce reaches 2**30, and
    a right shift of 1 to 22. A channel whose result rounds to 0 for every input has multiplier 0.
    """
    wide = weights.astype(np.int64)
    folded = bias.astype(np.int64) - zero_point * wide.sum(axis=1)
    largest = np.abs(folded) + 128 * np.abs(wide).sum(axis=1)
    right = -shift.astype(np.int64) - 1
    products = largest.astype(np.float64) * multiplier / 2.0**31 + 1.0
    vanishing = (multiplier == 0) | ((right >= 0) & (products < 2.0**right))
    fast_multiplier = np.where(vanishing, 0, multiplier).astype(np.int32)
    fast_shift = np.where(vanishing, 0, right)
    possible = (largest < _SUM_LIMIT) & (fast_shift >= 0) & (fast_shift <= _LARGEST_FAST_SHIFT)
    wrapped = ((folded + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32)
    if not possible.all():
        return Scaling(wrapped, multiplier, shift.astype(np.int8), "THIMBLE_REQUANT_GENERAL")
    clamped = activation != (-128, 127)
    form = "THIMBLE_REQUANT_FAST_CLAMPED" if clamped else "THIMBLE_REQUANT_FAST"
    return Scaling(wrapped, fast_multiplier, fast_shift.astype(np.int8), form)


def single_rounding_scaling(
    bias: Int32,
    weights: Int8,
    zero_point: int,
    factors: NDArray[np.float64],
    activation: tuple[int, int],
    output_offset: int,
) -> Scaling | None:
    """As `scaling`, for kernels whose law is one rounding in double (`_single_rounding`).

    `factors` has one entry, or one per channel. None where no integer form was found.
    """
    wide = weights.astype(np.int64)
    folded = bias.astype(np.int64) - zero_point * wide.sum(axis=1)
    largest = np.abs(folded) + 128 * np.abs(wide).sum(axis=1)
    span = (activation[0] - output_offset, activation[1] - output_offset)
    bounds = largest if len(factors) > 1 else largest.max(keepdims=True)
    fits = [
        single_rounding(float(factor), int(bound), *span)
        for factor, bound in zip(factors, bounds, strict=True)
    ]
    found = [fit for fit in fits if fit is not None]
    if len(found) < len(fits):
        return None
    multiplier = np.array([fit.multiplier for fit in found], dtype=np.int32)
    shift = np.array([fit.shift for fit in found])
    shift = np.where(multiplier == 0, -1, shift)
    right = -shift - 1
    fast = int(bounds.max()) < _SUM_LIMIT and bool(
        ((right >= 0) & (right <= _LARGEST_FAST_SHIFT)).all()
    )
    clamped = activation != (-128, 127)
    form = "THIMBLE_REQUANT_FAST_CLAMPED" if clamped else "THIMBLE_REQUANT_FAST"
    channels = weights.shape[0]
    return Scaling(
        folded.astype(np.int32),
        np.broadcast_to(multiplier, channels),
        np.broadcast_to(right if fast else shift, channels).astype(np.int8),
        form if fast else "THIMBLE_REQUANT_GENERAL",
    )


def _words(array: NDArray[np.generic]) -> NDArray[np.int32]:
    """The last axis of a byte, int16 or int32 array as little-endian words."""
    little = array.astype(array.dtype.newbyteorder("<"))
    return np.ascontiguousarray(little).view("<i4").astype(np.int32)


def _pad(array: NDArray[np.generic], axis: int, multiple: int) -> NDArray[np.generic]:
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % multiple)
    return np.pad(array, widths)


def _blocks(
    weights: Int8, scales: Scaling, lanes: int
) -> tuple[Int32, NDArray[np.int32], Int32, Int8]:
    """Biases, filter words, multipliers and shifts in blocks of `lanes` channels.

    Filter words have shape [blocks, words * lanes]: the lanes take turns, word by word.
    """
    filters = _words(_pad(_pad(weights, 1, 4), 0, lanes))
    blocks = filters.shape[0] // lanes
    turns = filters.reshape(blocks, lanes, -1).transpose(0, 2, 1).reshape(blocks, -1)
    bias, multiplier, shift = (
        _pad(a, 0, lanes).reshape(blocks, lanes)
        for a in (scales.bias, scales.multiplier, scales.shift)
    )
    return bias, turns, multiplier, shift  # type: ignore[return-value]


def pack_convolution(weights: Int8, scales: Scaling, groups: int) -> Int32:
    """For `thimble_convolve_s8`: weights [channels, taps], channels of a group adjacent."""
    per_group = weights.shape[0] // groups
    parts = []
    for group in range(groups):
        chosen = slice(group * per_group, (group + 1) * per_group)
        own = Scaling(
            scales.bias[chosen], scales.multiplier[chosen], scales.shift[chosen], scales.form
        )
        bias, filters, multiplier, shift = _blocks(weights[chosen], own, 2)
        shifts = _words(shift.astype(np.int16))
        parts.append(np.concatenate([bias, filters, multiplier, shifts], axis=1).reshape(-1))
    return np.concatenate(parts).astype(np.int32)


def pack_depthwise(weights: Int8, scales: Scaling) -> Int32:
    """For `thimble_depthwise_conv_s8`: weights [channels, taps]."""
    taps = _words(_pad(np.concatenate([scales.shift[:, None], weights], axis=1), 1, 4))
    heads = np.stack([scales.bias, scales.multiplier], axis=1)
    return np.concatenate([heads, taps], axis=1).reshape(-1).astype(np.int32)


def pack_fully_connected(weights: Int8, scales: Scaling, common: bool) -> Int32:
    """For `thimble_fully_connected_s8`: weights [units, depth].

    `common`: one multiplier and shift serve all units and are given apart.
    """
    bias, filters, multiplier, shift = _blocks(weights, scales, 4)
    parts = [bias, filters] if common else [bias, filters, multiplier, _words(shift)]
    return np.concatenate(parts, axis=1).reshape(-1).astype(np.int32)


def pack_common_scaling(scales: Scaling) -> Int32:
    """The `common` argument of `thimble_fully_connected_s8`."""
    shifts = _words(np.repeat(scales.shift[:1], 4))
    return np.concatenate([np.repeat(scales.multiplier[:1], 4), shifts]).astype(np.int32)
