"""Placements that are asked for again: networks on several cores often have the same blocks."""

from __future__ import annotations

from toolchain.arena import Allocator
from toolchain.ir import ArenaProblem, Placement

_Asked = tuple[ArenaProblem, float | None, int | None]


class Remembered:
    """An allocator that places equal problems, within equal limits, once."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._known: dict[_Asked, Placement] = {}

    @property
    def name(self) -> str:
        return self._allocator.name

    def place(
        self,
        problem: ArenaProblem,
        time_limit_seconds: float | None = None,
        capacity_bytes: int | None = None,
    ) -> Placement:
        """The placement of the allocator, of the first time that it was asked for."""
        asked = problem, time_limit_seconds, capacity_bytes
        if asked not in self._known:
            self._known[asked] = self._allocator.place(*asked)
        return self._known[asked]
