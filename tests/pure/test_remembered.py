"""An allocator that places equal problems once."""

from __future__ import annotations

from toolchain.ir import ArenaProblem, Block, Placement
from toolchain.memory.remembered import Remembered


class _Counting:
    name = "counting"

    def __init__(self) -> None:
        self.asked: list[tuple[ArenaProblem, float | None, int | None]] = []

    def place(
        self,
        problem: ArenaProblem,
        time_limit_seconds: float | None = None,
        capacity_bytes: int | None = None,
    ) -> Placement:
        self.asked.append((problem, time_limit_seconds, capacity_bytes))
        return Placement(self.name, (0,), len(self.asked), 0, 0.0)


def _problem(size_bytes: int) -> ArenaProblem:
    return ArenaProblem((Block("x", 0, 1, size_bytes),))


def test_equal_problems_with_equal_limits_are_placed_once() -> None:
    counting = _Counting()
    remembered = Remembered(counting)
    sizes = [
        remembered.place(_problem(size), limit, capacity).size_bytes
        for _ in range(2)
        for size in (8, 16)
        for limit in (None, 1.0)
        for capacity in (None, 8)
    ]
    assert sizes == [*range(1, 9)] * 2
    assert len(set(counting.asked)) == len(counting.asked) == 8
    assert remembered.name == "counting"
