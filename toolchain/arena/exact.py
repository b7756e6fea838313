"""The smallest arena, proved; or, when time is up, the best that was found and a bound.

1. List allocators and a load bound: where they meet, that is the answer.
2. A skyline search (`_skyline.py`) for a placement as small as the bound, under several rules in
   turn with few trials each, then with more ("heavy tails": what one rule misses for hours another
   finds at once). Where the bound is proved out of reach it rises; where the search drags on,
   sizes between the bound and the best placement are tried as well.
3. Where blocks may share bytes, the search ties them, which may cost the optimum: what is left of
   the gap goes to CP-SAT.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from toolchain.arena._bounds import load_bound_bytes
from toolchain.arena._fit import fit, size_bytes
from toolchain.arena._program import solve
from toolchain.arena._shapes import Shapes, shapes
from toolchain.arena._skyline import Choice, Rank, Skyline, State, Verdict
from toolchain.arena.first_fit import by_start
from toolchain.arena.greedy_breadth import by_breadth
from toolchain.arena.greedy_size import by_size
from toolchain.ir import ArenaProblem, Placement

DEFAULT_TIME_LIMIT_SECONDS = 10.0


@dataclass
class _Bounds:
    """A placement of `size_bytes`, and a size that none goes below."""

    problem: ArenaProblem
    offsets: tuple[int, ...]
    lower_bytes: int
    capacity_bytes: int
    size_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.size_bytes = size_bytes(self.problem, self.offsets)

    def offer(self, offsets: tuple[int, ...]) -> None:
        """Keep the placement if it is the smallest so far."""
        size = size_bytes(self.problem, offsets)
        if size < self.size_bytes:
            self.offsets, self.size_bytes = offsets, size

    @property
    def closed(self) -> bool:
        """Proved smallest, or within the capacity, or proved that none is."""
        return (
            self.size_bytes <= max(self.lower_bytes, self.capacity_bytes)
            or 0 < self.capacity_bytes < self.lower_bytes
        )


class Exact:
    name = "exact"

    def place(
        self,
        problem: ArenaProblem,
        time_limit_seconds: float | None = None,
        capacity_bytes: int | None = None,
    ) -> Placement:
        """The smallest placement, or the best that was found within the time limit.

        With a capacity it stops at the first placement within it, or when there can be none.
        """
        begin = time.perf_counter()
        limit = DEFAULT_TIME_LIMIT_SECONDS if time_limit_seconds is None else time_limit_seconds
        deadline = begin + limit
        bounds = _Bounds(
            problem, fit(problem, by_size(problem)), load_bound_bytes(problem), capacity_bytes or 0
        )
        for order in (by_breadth, by_start):
            if not bounds.closed:
                bounds.offer(fit(problem, order(problem)))
        if not bounds.closed:
            _search(problem, bounds, deadline)
        if not bounds.closed:
            answer = solve(problem, bounds.offsets, bounds.lower_bytes, bounds.size_bytes, deadline)
            bounds.lower_bytes = max(bounds.lower_bytes, answer.lower_bound_bytes)
            if answer.offsets is not None:
                bounds.offer(answer.offsets)
        return Placement(
            allocator=self.name,
            offsets=bounds.offsets,
            size_bytes=bounds.size_bytes,
            lower_bound_bytes=min(bounds.lower_bytes, bounds.size_bytes),
            seconds=time.perf_counter() - begin,
        )


def _ranks(given: Shapes) -> tuple[Rank, ...]:
    """Which shape first: the longest, the largest, in the busiest section, ..."""
    load = [0] * given.sections
    for shape in given.shapes:
        for k in range(shape.first, shape.last):
            load[k] += shape.heights[k - shape.first]
    steps = [shape.steps for shape in given.shapes]
    area = [shape.area for shape in given.shapes]
    height = [shape.top_bytes for shape in given.shapes]
    busiest = [max(load[shape.first : shape.last]) for shape in given.shapes]
    return (
        lambda i: (-steps[i], -area[i], i),
        lambda i: (-height[i], -steps[i], i),
        lambda i: (-busiest[i], -steps[i], i),
        lambda i: (-busiest[i], -area[i], i),
    )


class _Target:
    """The search for a placement within one capacity, under all rules in turn."""

    def __init__(self, given: Shapes, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self._given = given
        self._impossible: set[State] = set()
        self._blocked: list[int] = []
        self._placement_limit = 4 * len(given.shapes)
        self._rules = self._turns()

    def _turns(self) -> Iterator[tuple[Choice, Rank]]:
        while True:
            for rank, choice in product(_ranks(self._given), Choice):
                yield choice, rank
            self._placement_limit *= 2

    def take_turn(self, problem: ArenaProblem, bounds: _Bounds) -> Verdict:
        """One rule, with the trials that it is due."""
        choice, rank = next(self._rules)
        search = Skyline(self._given, self.capacity_bytes, choice, rank, self._impossible)
        verdict = search.run(self._placement_limit)
        if search.blocked_bytes is not None:
            self._blocked.append(search.blocked_bytes)
        if verdict is Verdict.FOUND:
            offsets = [0] * len(problem.blocks)
            for shape, at in zip(self._given.shapes, search.offsets, strict=True):
                for block, up in shape.members:
                    offsets[block] = at + up
            bounds.offer(tuple(offsets))
        return verdict

    @property
    def next_capacity_bytes(self) -> int:
        """The least capacity worth trying once this one is impossible."""
        return min(self._blocked)


def _search(problem: ArenaProblem, bounds: _Bounds, deadline: float) -> None:
    """Close the bounds by skyline searches: at the bound itself, and between it and the best.

    For tied blocks the lower bound stays what it was.
    """
    given = shapes(problem)
    lower = bounds.lower_bytes
    at_bound = _Target(given, max(lower, bounds.capacity_bytes))
    between: _Target | None = None
    while not bounds.closed and lower < bounds.size_bytes and time.perf_counter() < deadline:
        for _ in range(12):
            verdict = at_bound.take_turn(problem, bounds)
            if verdict is not Verdict.STOPPED or time.perf_counter() > deadline:
                break
        if verdict is Verdict.IMPOSSIBLE:
            lower = at_bound.next_capacity_bytes
            if not given.rigid:
                bounds.lower_bytes = lower
            at_bound = _Target(given, lower)
            continue
        if bounds.closed or bounds.capacity_bytes:
            continue
        middle = (lower + bounds.size_bytes) // 2
        if between is None or between.capacity_bytes >= bounds.size_bytes:
            between = _Target(given, middle)
        verdict = between.take_turn(problem, bounds)
        if verdict is Verdict.IMPOSSIBLE:
            lower = max(lower, between.next_capacity_bytes)
            if not given.rigid:
                bounds.lower_bytes = max(bounds.lower_bytes, lower)
            between = None
            at_bound = _Target(given, lower)


ALLOCATOR = Exact()
