"""Requantisation by the high word of one product, against the roundings that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.arithmetic.high_word import (
    HighWord,
    begins_in_float32,
    begins_in_tflite,
    first_within,
    high_word,
    steered,
    within_float32,
)
from toolchain.ops.arithmetic.single_rounding import scaled_in_float32

Int64 = NDArray[np.int64]
CHANNELS = 40
REACH = 1 << 15


def _factors(seed: int) -> tuple[NDArray[np.float32], Int64, Int64]:
    rng = np.random.default_rng(seed)
    factors = (2.0 ** rng.uniform(-11, -2.1, CHANNELS)).astype(np.float32)
    pairs = [quantize_multiplier(float(factor)) for factor in factors]
    multiplier, shift = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    return factors, multiplier, -shift


def _values(offset: int) -> Int64:
    return np.arange(-127 - offset, 128 - offset, dtype=np.int64)


def _applied(found: HighWord, channel: int, sums: Int64, multiplier: int, k: int) -> Int64:
    """What SMMLA, the shift and SSAT compute."""
    product = (sums + found.added[channel]) * multiplier
    assert np.abs(sums + found.added[channel]).max() < 1 << 31
    high = (product >> 32) + found.rounding[channel]
    assert np.abs(high).max() < 1 << 31
    return np.clip(high >> (k - 32), -128, 127)


def _reach() -> tuple[Int64, Int64]:
    most = np.full(CHANNELS, REACH, dtype=np.int64)
    return -most, most


def _fitted(begins: Int64, multiplier: Int64, right: Int64, offset: int) -> HighWord:
    return high_word(multiplier, right + 31, begins, _values(offset), _reach(), offset)


def test_an_activation_that_ends_at_the_zero_point_is_rounded_once_as_tflite_does_twice() -> None:
    _, multiplier, right = _factors(1)
    offset, sums = -128, np.arange(-REACH, REACH + 1, dtype=np.int64)
    begins = begins_in_tflite(multiplier, right, _values(offset))
    found = _fitted(begins, multiplier, right, offset)
    assert found.exact.all()
    for channel in range(CHANNELS):
        scaled = multiply_by_quantized_multiplier(
            sums, multiplier[channel : channel + 1], -right[channel : channel + 1]
        )
        have = _applied(found, channel, sums, int(multiplier[channel]), int(right[channel]) + 31)
        np.testing.assert_array_equal(have, np.clip(scaled + offset, -128, 127))


@pytest.mark.parametrize("offset", (-128, 3))
def test_what_is_exact_rounds_as_onnx_runtime_does(offset: int) -> None:
    factors, multiplier, right = _factors(2)
    begins, known = begins_in_float32(factors, _values(offset))
    assert known.all() and within_float32(*_reach()).all()
    found = _fitted(begins, multiplier, right, offset)
    assert found.exact.mean() > 0.9
    sums = np.arange(-REACH, REACH + 1, dtype=np.int64)
    for channel in np.flatnonzero(found.exact):
        want = np.clip(scaled_in_float32(sums, factors[channel]) + offset, -128, 127)
        have = _applied(found, channel, sums, int(multiplier[channel]), int(right[channel]) + 31)
        np.testing.assert_array_equal(have, want)


def test_a_multiplier_beside_its_own_is_found_where_that_has_no_constants() -> None:
    factors, own, right = _factors(5)
    factors, right = factors / np.float32(256), right + 8
    begins, _ = begins_in_float32(factors, _values(3))
    most = np.full(CHANNELS, 128 * REACH, dtype=np.int64)
    problem = (right + 31, begins, _values(3), (-most, most))
    multiplier = steered(own, *problem)
    before, found = high_word(own, *problem, 3), high_word(multiplier, *problem, 3)
    np.testing.assert_array_equal(multiplier[before.exact], own[before.exact])
    assert found.exact.sum() > before.exact.sum() and np.abs(multiplier - own).max() < 1 << 15
    sums = np.unique(np.clip(begins[:, :, None] + np.arange(-3, 4), -most[0], most[0]))
    for channel in np.flatnonzero(found.exact):
        want = np.clip(scaled_in_float32(sums, factors[channel]) + 3, -128, 127)
        have = _applied(found, channel, sums, int(multiplier[channel]), int(right[channel]) + 31)
        np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("end", (-127, 126))
def test_channels_that_always_saturate_need_a_bound_on_one_side_only(end: int) -> None:
    factors, multiplier, right = _factors(6)
    begins, _ = begins_in_float32(factors, _values(0))
    reached = begins[:, 127 + end]
    past = reached < 1 << 19 if end > 0 else reached > -(1 << 19)
    near, far = reached + (300 if end > 0 else -300), reached + (999 if end > 0 else -999)
    reach = (np.minimum(near, far), np.maximum(near, far))
    found = high_word(multiplier, right + 31, begins, _values(0), reach, 0)
    assert past.any() and found.exact[past].all()
    for channel in np.flatnonzero(past):
        sums = np.arange(reach[0][channel], reach[1][channel] + 1, dtype=np.int64)
        want = np.clip(scaled_in_float32(sums, factors[channel]), -128, 127)
        have = _applied(found, channel, sums, int(multiplier[channel]), int(right[channel]) + 31)
        np.testing.assert_array_equal(have, want)


def test_two_roundings_of_either_sign_are_no_straight_line() -> None:
    """Halves go away from zero, so values below 0 begin later: with many values no line fits."""
    _, multiplier, right = _factors(3)
    begins = begins_in_tflite(multiplier, right, _values(0))
    fine = right >= 7
    found = _fitted(begins, multiplier, right, 0)
    assert fine.sum() > 5 and not found.exact[fine].any()


def test_a_value_that_begins_one_sum_later_is_no_longer_exact() -> None:
    _, multiplier, right = _factors(4)
    begins = begins_in_tflite(multiplier, right, _values(-128))
    begins[:, 40] += 2
    reached = begins[:, 40] < REACH
    assert reached.any() and not _fitted(begins, multiplier, right, -128).exact[reached].any()


def test_the_first_multiple_within_a_range_is_found() -> None:
    rng = np.random.default_rng(5)
    for _ in range(2000):
        modulus = int(rng.integers(1, 60))
        step = int(rng.integers(modulus))
        begin, end = sorted(int(each) for each in rng.integers(0, modulus, 2))
        within = (n for n in range(modulus) if begin <= n * step % modulus <= end)
        assert first_within(step, modulus, begin, end) == next(within, None)
