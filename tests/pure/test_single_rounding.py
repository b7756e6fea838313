"""The integer form of LiteRT's rounding in double: equal wherever sums can fall."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from toolchain.ops._fixed_point import round_half_away
from toolchain.ops._single_rounding import single_rounding


@settings(deadline=None, max_examples=150)
@given(
    mantissa=st.floats(0.5, 1.0, exclude_max=True),
    exponent=st.integers(-24, 4),
    largest=st.integers(1, 2**31 - 1),
    zero_point=st.integers(-128, 127),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_rounding_in_double(
    mantissa: float, exponent: int, largest: int, zero_point: int, seed: int
) -> None:
    factor = float(np.ldexp(mantissa, exponent))
    low, high = -128 - zero_point, 127 - zero_point
    found = single_rounding(factor, largest, low, high)
    assert found is not None
    rng = np.random.default_rng(seed)
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
