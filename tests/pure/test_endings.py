"""How sums of convolutions end, as kernels compute it, against the roundings it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.arithmetic.onnx_rounding import FLOAT_CODE
from toolchain.ops.arithmetic.packing import Ending, Scaling, scaling
from toolchain.ops.arithmetic.single_rounding import scaled_in_float32
from toolchain.ops.convolution.endings import (
    CODE_ONCE,
    block_endings,
    channel_endings,
    raised_endings,
)

CHANNELS, TAPS = 60, 64
FULL = (-128, 127)
ONCE_PAIR, ONCE_SHIFT = 256, 1


def _filters(rng: np.random.Generator) -> NDArray[np.int8]:
    return rng.integers(-127, 128, (CHANNELS, TAPS)).astype(np.int8)


def _factors(rng: np.random.Generator) -> NDArray[np.float32]:
    return (2.0 ** rng.uniform(-10, -7, CHANNELS)).astype(np.float32)


def _in_float(rng: np.random.Generator) -> Scaling:
    """What `onnx_scaling` makes."""
    bits = _factors(rng).view(np.int32)
    bias = rng.integers(-20000, 20000, CHANNELS).astype(np.int32)
    zero, code = np.zeros(CHANNELS, np.int32), np.full(CHANNELS, FLOAT_CODE, np.int8)
    return Scaling(_filters(rng), bias, bits, zero, code)


def _in_fixed_point(rng: np.random.Generator, offset: int) -> Scaling:
    pairs = [quantize_multiplier(float(factor)) for factor in _factors(rng)]
    multiplier, shift = (np.array(column, dtype=np.int32) for column in zip(*pairs, strict=True))
    bias = rng.integers(-20000, 20000, CHANNELS).astype(np.int32)
    return scaling(bias, _filters(rng), 3, multiplier, shift, FULL, offset)


def _sums(scales: Scaling, channel: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Sums without bias, from end to end of what the filters reach."""
    wide = scales.filters[channel].astype(np.int64)
    low = int(np.minimum(-128 * wide, 127 * wide).sum())
    high = int(np.maximum(-128 * wide, 127 * wide).sum())
    near = np.arange(-1000, 1000) - int(scales.bias[channel])
    drawn = rng.integers(low, high + 1, 4000)
    return np.unique(np.clip(np.concatenate([near, drawn, [low, high]]), low, high))


def _once(ending: Ending, channel: int, shift: int, sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """thimble_requantize_merged_fast."""
    product = (sums + ending.bias[channel]) * int(ending.multiplier[channel])
    high = (product >> 32) + int(ending.rounding[channel])
    assert np.abs(high).max() < 1 << 31
    return np.clip(high >> shift >> 1, -128, 127)


def _doubled(ending: Ending, channel: int, sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """thimble_requantize_doubled."""
    doubled, code = 2 * (sums + ending.bias[channel]), int(ending.code[channel])
    assert np.abs(doubled).max() < 1 << 31
    high = doubled * int(ending.multiplier[channel]) + (1 << 31) >> 32
    high = high + int(ending.rounding[channel]) + (doubled >> 31)
    assert np.abs(high).max() < 1 << 31
    return np.clip(high >> code >> 1, -128, 127)


def _check(scales: Scaling, offset: int, rng: np.random.Generator) -> tuple[int, int, int]:
    """Compare every channel that is rounded once; how many there are of each form."""
    pairs = block_endings(scales, offset, FULL, 0, 1, 2)
    alone = channel_endings(scales, offset, 0)
    raised = raised_endings(scales, offset, FULL)
    count = [0, 0, 0]
    for channel in range(CHANNELS):
        sums = _sums(scales, channel, rng)
        total = sums + int(scales.bias[channel])
        if scales.code[channel] == FLOAT_CODE:
            factor = scales.multiplier.view(np.float32)[channel]
            want = scaled_in_float32(total, factor)
        else:
            one = slice(channel, channel + 1)
            shift = -(scales.code[one].astype(np.int32) + 1)
            want = multiply_by_quantized_multiplier(total, scales.multiplier[one], shift)
        want = np.clip(want + offset, -128, 127)
        if pairs.code[channel] >= ONCE_PAIR:
            count[0] += 1
            have = _once(pairs, channel, int(pairs.code[channel]) - ONCE_PAIR, sums)
            np.testing.assert_array_equal(have, want)
        if alone.code[channel] == CODE_ONCE:
            count[1] += 1
            np.testing.assert_array_equal(_once(alone, channel, ONCE_SHIFT, sums), want)
        if raised.code[channel] >= 0:
            count[2] += 1
            np.testing.assert_array_equal(_doubled(raised, channel, sums), want)
    return count[0], count[1], count[2]


@pytest.mark.parametrize("offset", (-128, -7, 127))
def test_nearly_all_channels_of_onnx_are_rounded_once(offset: int) -> None:
    rng = np.random.default_rng(offset + 200)
    pairs, alone, raised = _check(_in_float(rng), offset, rng)
    assert pairs >= CHANNELS * 0.8 and min(alone, raised) >= CHANNELS * 0.9


def test_channels_of_tflite_that_end_at_the_zero_point_are_rounded_once() -> None:
    rng = np.random.default_rng(1)
    pairs, alone, raised = _check(_in_fixed_point(rng, -128), -128, rng)
    assert min(pairs, alone) >= CHANNELS * 0.8 and raised == CHANNELS


def test_a_narrow_activation_is_not_rounded_once() -> None:
    rng = np.random.default_rng(2)
    scales = _in_float(rng)
    assert (block_endings(scales, 0, (-128, 100), 0, 1, 2).code == FLOAT_CODE).all()
    assert (raised_endings(scales, 0, (0, 127)).code == FLOAT_CODE).all()
