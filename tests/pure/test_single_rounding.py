"""The integer form of LiteRT's rounding in double: equal wherever sums can fall."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.ops.arithmetic.fixed_point import round_half_away
from toolchain.ops.arithmetic.single_rounding import single_rounding


@pytest.mark.parametrize("seed", range(150))
def test_equals_rounding_in_double(seed: int) -> None:
    """Factors are those of float32 scales, as models have them."""
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0.5, 1.0, 3).astype(np.float32).astype(np.float64)
    factor = float(np.ldexp(scales[0] * scales[1] / scales[2], int(rng.integers(-24, 5))))
    largest = int(2 ** rng.uniform(0, 31))
    zero_point = int(rng.integers(-128, 128))
    low, high = -128 - zero_point, 127 - zero_point
    found = single_rounding(factor, largest, low, high)
    assert found is not None
    edges = (np.arange(low - 1, high + 2) + 0.5) / factor
    near = (np.floor(edges)[:, None] + np.arange(-1, 3)).astype(np.int64).reshape(-1)
    sums = np.concatenate([near, rng.integers(-largest, largest + 1, 500), [largest, -largest]])
    sums = sums[np.abs(sums) <= largest]
    expected = np.clip(round_half_away(sums.astype(np.float64) * factor), low, high)
    np.testing.assert_array_equal(np.clip(found.apply(sums), low, high), expected)


def test_exact_halves_round_away_from_zero() -> None:
    found = single_rounding(0.25, 1000, -128, 127)
    assert found is not None
    sums = np.array([2, 6, -2, -6, 1, -1, 3, -3])
    np.testing.assert_array_equal(found.apply(sums), [1, 2, -1, -2, 0, 0, 1, -1])
