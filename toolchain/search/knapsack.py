"""The most valuable choice of one alternative each, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_MOST_STATES = 20_000
"""Beyond, sizes are rounded up, to twice the unit each time."""


@dataclass(frozen=True)
class Packed:
    """`choices`: for each item the index of its alternative, or None. `optimal`: no choice is worth
    more."""

    choices: tuple[int | None, ...]
    optimal: bool


def pack(items: Sequence[Sequence[tuple[int, int]]], budget: int) -> Packed:
    """Choose at most one alternative (size, value) of each item: the greatest total value whose
    total size is at most `budget`; among equals the smallest size. Sizes are at least 0.

    Exact by dynamic programming over choices that no other dominates, as long as these are few;
    then by sizes that are rounded up, which still fit.
    """
    unit = 1
    while True:
        choices = _choices(items, budget, unit)
        if choices is not None:
            return Packed(choices, unit == 1)
        unit *= 2


def _choices(
    items: Sequence[Sequence[tuple[int, int]]], budget: int, unit: int
) -> tuple[int | None, ...] | None:
    """The best choices with sizes rounded up to `unit`; None where there are too many states."""
    sizes, values = np.zeros(1, np.int64), np.zeros(1, np.int64)
    stages: list[tuple[Ints, Ints]] = []
    for item in items:
        more = [(0, 0), *((-(-size // unit) * unit, value) for size, value in item)]
        size = np.concatenate([sizes + add for add, _ in more])
        value = np.concatenate([values + add for _, add in more])
        which = np.repeat(np.arange(len(more)), len(sizes))
        before = np.tile(np.arange(len(sizes)), len(more))
        order = np.lexsort((which, -value, size))
        order = order[size[order] <= budget]
        best = np.maximum.accumulate(value[order])
        kept = order[np.concatenate([[True], value[order][1:] > best[:-1]])]
        if len(kept) > _MOST_STATES:
            return None
        sizes, values = size[kept], value[kept]
        stages.append((which[kept], before[kept]))
    at = len(sizes) - 1
    choices: list[int | None] = []
    for which, before in reversed(stages):
        choices.append(int(which[at]) - 1 if which[at] else None)
        at = int(before[at])
    return tuple(reversed(choices))
