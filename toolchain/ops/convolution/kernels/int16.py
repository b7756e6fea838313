"""Sums and constants of the kernels of int16 images and int8 filters (TFLite's 16x8 scheme)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.convolution.common import channel_requantisation, filters_of
from toolchain.ops.convolution.parts import factor_bytes, factor_constants
from toolchain.ops.readers.int16 import bias_of, check_sums, held_by_cmsis_nn, largest_sums

FAST_TAPS = 512
"""A sum of this many products of int16 and int8 may overflow int32: CMSIS-NN's fast kernels take
fewer. Its other kernels sum in int64."""


def held(op: kit.AnyOperator) -> bool:
    """Whether CMSIS-NN's kernels hold every sum."""
    return held_by_cmsis_nn(*_sums(op))


def _sums(op: kit.AnyOperator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest magnitude of each channel's sum, and the factor that scales it."""
    x, weights, y, filters = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y, filters_of(op)
    factors = x.q.scale * np.array(weights.q.scales) / y.q.scale
    bias = bias_of(op, kit.BIAS, len(filters))
    return largest_sums(filters.astype(np.int64), bias), np.broadcast_to(factors, len(filters))


def per_channel(op: kit.AnyOperator, spare: int = 0) -> tuple[kit.Constant, ...]:
    """Bias and requantisation of each channel, then `spare` channels of nothing.

    Raises UnsupportedError where LiteRT's scaling of a sum is undefined.
    """
    channels = op.y.shape[3]
    bias = bias_of(op, kit.BIAS, channels)
    check_sums(op, *_sums(op))
    factors = channel_requantisation(op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y, channels)
    return kit.constant("bias", np.pad(bias, (0, spare)), "int64"), *factor_constants(
        factors, spare
    )


def per_channel_bytes(channels: int) -> dict[str, int]:
    """Bytes of what `per_channel` gives."""
    return {**factor_bytes(channels), "bias": 8 * channels}
