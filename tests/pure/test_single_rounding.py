"""Multipliers that round once: every sum tried, not only those at which a value begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolchain.ops._single_rounding import (
    Rule,
    scaled_in_double,
    scaled_in_float32,
    single_rounding,
)

LARGEST = 60_000
SUMS = np.arange(-LARGEST, LARGEST + 1, dtype=np.int64)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(2.0**-20, 4.0, allow_subnormal=False),
    st.integers(-128, 127),
    st.sampled_from([scaled_in_double, scaled_in_float32]),
)
def test_integers_round_every_sum_as_the_rule_does(factor: float, zero: int, rule: Rule) -> None:
    low, high = -128 - zero, 127 - zero
    exact = float(np.float32(factor))
    found = single_rounding(exact, LARGEST, low, high, rule, wide=False)
    assume(found is not None)
    assert found is not None and found.low == 0
    got = np.clip(found.apply(SUMS), low, high)
    np.testing.assert_array_equal(got, np.clip(rule(SUMS, exact), low, high))


def test_almost_every_scale_has_a_multiplier() -> None:
    rng = np.random.default_rng(4)
    factors = np.exp2(rng.uniform(-14, -2, 200)).astype(np.float32)
    found = [
        single_rounding(float(f), LARGEST, -128, 127, scaled_in_float32, wide=False)
        for f in factors
    ]
    assert sum(fit is not None for fit in found) >= 150


@pytest.mark.parametrize("factor", [0.5, 0.25, 1.0, 2.0**-9])
def test_powers_of_two_round_halves_away_in_double(factor: float) -> None:
    found = single_rounding(factor, LARGEST, -128, 127, scaled_in_double, wide=False)
    assert found is not None
    np.testing.assert_array_equal(
        np.clip(found.apply(SUMS), -128, 127), np.clip(scaled_in_double(SUMS, factor), -128, 127)
    )
