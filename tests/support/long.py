"""Which parameters of a test stay in `make test`; the others are for `make test-long`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings


def mostly_long(values: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """`values` for `parametrize`, all but `kept` with the marker `long`.

    `docs/tests.md` says why of each group. Raises ValueError if one to keep is not there.
    """
    listed = list(values)
    absent = [value for value in kept if value not in listed]
    if absent:
        raise ValueError(f"not among the parameters: {absent}")
    return [v if v in kept else pytest.param(v, marks=pytest.mark.long) for v in listed]


def examples(count: int) -> int:
    """How many examples Hypothesis draws where `make test` draws `count`.

    `make test-long` draws more: `--hypothesis-profile long` (tests/conftest.py).
    """
    return count * settings.default.max_examples // 100
