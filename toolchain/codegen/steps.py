"""Costs of the calls of one run, as the table by which generated code runs in steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Graph

_LARGEST = (1 << 32) - 1


@dataclass(frozen=True)
class Costs:
    """Expected costs of the graph's operators, in `unit`. `basis`: where they are from, for people
    ("predicted")."""

    counts: tuple[int, ...]
    unit: str
    basis: str


@dataclass(frozen=True)
class Steps:
    """The calls of one run: `counts` in their order, which fit uint32.

    `scale`: a power of two. In its multiples, rounded up, all counts fit the smallest type that
    tells them apart to a 65,535th of the longest (`scaled`).
    """

    counts: tuple[int, ...]
    unit: str
    basis: str
    longest_kind: str = ""
    longest_name: str = ""

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def scale(self) -> int:
        parts = -(-max(self.counts, default=0) // 0xFFFF)
        return 1 << (max(parts, 1) - 1).bit_length()

    @property
    def scaled(self) -> NDArray[np.generic]:
        units = [-(-count // self.scale) for count in self.counts]
        return np.array(units, np.uint8 if max(units, default=0) <= 0xFF else np.uint16)

    @property
    def longest(self) -> int:
        """The longest call, as the table has it."""
        return min(max(map(int, self.scaled), default=0) * self.scale, _LARGEST)


def steps_of(costs: Costs | None, calls: Sequence[int], graph: Graph) -> Steps | None:
    """The table for these calls, which are indices in `graph.ops`; None without costs."""
    if costs is None:
        return None
    counts = tuple(min(costs.counts[number], _LARGEST) for number in calls)
    if not counts:
        return Steps((), costs.unit, costs.basis)
    name, kind = graph.ops[calls[counts.index(max(counts))]].counted_as
    return Steps(counts, costs.unit, costs.basis, kind, name)
