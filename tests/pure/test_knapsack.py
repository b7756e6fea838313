"""The knapsack is exact: compared with all choices; still fits where sizes had to be rounded."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolchain.search.knapsack import pack

ALTERNATIVE = st.tuples(st.integers(0, 40), st.integers(0, 50))
ITEMS = st.lists(st.lists(ALTERNATIVE, max_size=3), max_size=5)


def _total(items: list[list[tuple[int, int]]], choices: tuple[int | None, ...]) -> tuple[int, int]:
    taken = [item[at] for item, at in zip(items, choices, strict=True) if at is not None]
    return sum(size for size, _ in taken), sum(value for _, value in taken)


@given(items=ITEMS, budget=st.integers(0, 120))
def test_no_other_choice_is_worth_more(items: list[list[tuple[int, int]]], budget: int) -> None:
    found = pack(items, budget)
    size, value = _total(items, found.choices)
    every = (_total(items, c) for c in product(*([None, *range(len(item))] for item in items)))
    most, least_size = max((v, -s) for s, v in every if s <= budget)
    assert found.optimal and size <= budget and (value, -size) == (most, least_size)


def test_many_items_still_fit() -> None:
    """Every sum is worth its size: too many states, so sizes are rounded up, and little is lost."""
    rng = np.random.default_rng(1)
    items = [[(int(s), int(s))] for s in rng.integers(1, 10**6, 40)]
    found = pack(items, 10**7)
    size, value = _total(items, found.choices)
    assert not found.optimal
    assert 0.99 * 10**7 < value == size <= 10**7
