"""The smallest arena, proved; or, when the work limit is reached, the best one found and a bound.

1. List allocators and a load bound: if they are equal, that is the answer.

2. A skyline search (`_skyline.py`) for a placement as small as the bound. It uses several rules in
turn, with few trials each, then with more, and then shuffled rules: a placement that one rule
misses for hours, another may find at once ("heavy tails"). If the bound is proved unreachable, it
rises. If the search takes long, sizes between the bound and the best placement are tried as well.

3. If blocks may share bytes, the search ties them, which may miss the optimum. A local search over
orders (`_orders.py`) then works on the remaining gap, and after it CP-SAT, where the extra `solver`
is installed.

If blocks are live in part, or are very many, sweeps (`_sweep.py`) come first: within 8% of the
bound, then ever closer. Very many blocks get nothing else. If even comparing blocks that are live
together would take more than the work limit, heaps (`_many.py`) give the answer.

Limits are counted work (`toolchain.search`), so a busy machine finds what an idle one does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from toolchain.arena._bounds import load_bound_bytes
from toolchain.arena._fit import Fitter, live_blocks, size_bytes
from toolchain.arena._many import (
    compare,
    heap_offsets,
    load_bound,
    orders,
    plain,
    stacked,
    too_many,
)
from toolchain.arena._orders import smaller
from toolchain.arena._program import solve
from toolchain.arena._separation import Separation
from toolchain.arena._shapes import Shapes, shapes
from toolchain.arena._skyline import Choice, Rank, Skyline, State, Verdict
from toolchain.arena._sweep import Sweep
from toolchain.arena.first_fit import by_start
from toolchain.arena.greedy_breadth import by_breadth
from toolchain.arena.greedy_size import by_size
from toolchain.ir import ArenaProblem, Placement
from toolchain.packages import SOLVER
from toolchain.search import Stopwatch, Work

DEFAULT_TIME_LIMIT_SECONDS = 10.0
_TRIALS_PER_SHAPE = 4
_SHAKEN = 12
"""Pairs of shaken rules after each round of the plain ones."""
_NOISE = 0.6
_TURNS = 6
"""Rules tried in one go for one capacity."""
_CLOSEST = 5
"""A capacity is tried that would save 1/2, 1/4, ... to 1/2^_CLOSEST of what is left to save."""
_MANY, _FEW_IN_PART = 1000, 100
"""More blocks than these are left to sweeps alone."""
_FIRST_SHARE = 0.08
"""How much more than the bound the first sweep may take."""
_SHARE, _SHARE_ALONE = 0.1, 0.4
"""Shares of the work left that the local search takes: before CP-SAT, and without CP-SAT."""
_CLOSER, _NEAR = 0.4, 0.01
"""Each next sweep keeps this share of the bytes above the bound; within _NEAR, one must meet it."""


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
        """Whether the placement is proved smallest, or fits the capacity, or none is proved to
        fit."""
        return (
            self.size_bytes <= max(self.lower_bytes, self.capacity_bytes)
            or 0 < self.capacity_bytes < self.lower_bytes
        )


class Exact:
    """The default allocator; see the module."""

    name = "exact"

    def place(
        self,
        problem: ArenaProblem,
        time_limit_seconds: float | None = None,
        capacity_bytes: int | None = None,
    ) -> Placement:
        """The smallest placement, or the best one found within so many seconds' worth of work.

        With a capacity it stops at the first placement within it, or when there can be none.
        """
        watch = Stopwatch()
        limit = DEFAULT_TIME_LIMIT_SECONDS if time_limit_seconds is None else time_limit_seconds
        work = Work(limit)
        heaps: _Bounds | None = None
        if plain(problem) and (len(problem.blocks) > _MANY or too_many(problem, limit)):
            heaps = _heaps(problem, work, capacity_bytes or 0)
            if heaps.closed or too_many(problem, work.left_seconds):
                return _placement(self.name, heaps, watch, work)
        compare(problem, work)
        separation = Separation(problem)
        fitter = Fitter(problem, separation)
        bounds = _Bounds(
            problem, fitter.fit(by_size(problem)), load_bound_bytes(problem), capacity_bytes or 0
        )
        if heaps is not None:
            bounds.offer(heaps.offsets)
        for order in (by_breadth, by_start):
            if not bounds.closed:
                bounds.offer(fitter.fit(order(problem)))
        count = len(live_blocks(problem))
        in_part = any(block.profile for block in problem.blocks)
        if not bounds.closed and (count > _MANY or in_part):
            _Sweeps(problem, bounds, Sweep(problem, separation, work)).search(work)
        few = count <= (_FEW_IN_PART if in_part else _MANY)
        if SOLVER.missing and count <= _MANY and not bounds.closed:
            _reorder(problem, bounds, fitter, work, _SHARE_ALONE)
        if few and not bounds.closed:
            _search(problem, bounds, work)
        if few and not bounds.closed:
            _reorder(problem, bounds, fitter, work, _SHARE)
        if few and not bounds.closed and not SOLVER.missing:
            answer = solve(problem, bounds.offsets, bounds.lower_bytes, bounds.size_bytes, work)
            bounds.lower_bytes = max(bounds.lower_bytes, answer.lower_bound_bytes)
            if answer.offsets is not None:
                bounds.offer(answer.offsets)
        return _placement(self.name, bounds, watch, work)


def _reorder(
    problem: ArenaProblem, bounds: _Bounds, fitter: Fitter, work: Work, share: float
) -> None:
    """Offer what a local search over orders finds with a share of the work that is left."""
    part = Work(work.left_seconds * share)
    orders = [order(problem) for order in (by_size, by_breadth, by_start)]
    wanted = max(bounds.lower_bytes, bounds.capacity_bytes)
    bounds.offer(smaller(problem, fitter, orders, wanted, part))
    work.spend(part.spent)


def _heaps(problem: ArenaProblem, work: Work, capacity_bytes: int) -> _Bounds:
    """The best of some heaps, and the load as the bound."""
    offsets = [0] * len(problem.blocks)
    stacked(problem, range(len(offsets)), 0, offsets)
    bounds = _Bounds(problem, tuple(offsets), load_bound(problem), capacity_bytes)
    took = 0.0
    for order in orders(problem):
        if bounds.closed or took > work.left_seconds:
            break
        before = work.spent_seconds
        bounds.offer(heap_offsets(problem, order, work))
        took = work.spent_seconds - before
    return bounds


def _placement(name: str, bounds: _Bounds, watch: Stopwatch, work: Work) -> Placement:
    return Placement(
        allocator=name,
        offsets=bounds.offsets,
        size_bytes=bounds.size_bytes,
        lower_bound_bytes=min(bounds.lower_bytes, bounds.size_bytes),
        seconds=watch.seconds,
        work_seconds=work.spent_seconds,
    )


def _shaken(given: Shapes, rng: random.Random) -> Rank:
    """Rank shapes by length with random noise, so that no two rankings are the same."""
    noisy = [-shape.steps * (1 - _NOISE / 2 + _NOISE * rng.random()) for shape in given.shapes]
    return lambda i: (noisy[i], i)


def _ranks(given: Shapes) -> tuple[Rank, ...]:
    """Ranks of shapes: by length, by size, by the load of their busiest section, ..."""
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


@dataclass
class _Sweeps:
    """Sweeps within smaller and smaller capacities."""

    problem: ArenaProblem
    bounds: _Bounds
    sweep: Sweep

    def search(self, work: Work) -> None:
        """Raise the capacity until a sweep succeeds; then close in on the bytes that failed or are
        proved.

        After a proof that a stretch does not fit, the next capacity is what is enough for it alone.
        """
        bounds = self.bounds
        if bounds.capacity_bytes:
            self._within(max(bounds.capacity_bytes, bounds.lower_bytes))
            return
        low, share, enough, fitted = bounds.lower_bytes, _FIRST_SHARE, 0, False
        while not bounds.closed and not work.over:
            room = bounds.size_bytes - low
            wanted = _even(low + int(room * _CLOSER if fitted else min(room, low * share)))
            near = room < low * _NEAR
            if near or low <= enough < bounds.size_bytes:
                wanted = max(low, enough)
            if wanted >= bounds.size_bytes:
                break
            answer = self._within(wanted)
            if near:
                break
            if answer is None:
                fitted, enough, low = True, 0, max(low, bounds.lower_bytes)
            else:
                low, enough, share = max(bounds.lower_bytes, wanted + 1), answer, 2 * share

    def _within(self, wanted_bytes: int) -> int | None:
        """Sweep within a capacity. None if it succeeds, else the bytes that the failed stretch
        needs, or 0.

        A proof about that stretch raises the bound.
        """
        bounds = self.bounds
        outcome = self.sweep.within(wanted_bytes)
        if outcome.verdict is Verdict.FOUND:
            bounds.offer(outcome.offsets)
            return None
        if outcome.verdict is not Verdict.IMPOSSIBLE:
            return wanted_bytes
        bounds.lower_bytes = max(bounds.lower_bytes, wanted_bytes + 1)
        proved, enough = self.sweep.least_bytes(outcome.core, wanted_bytes)
        bounds.lower_bytes = max(bounds.lower_bytes, proved)
        return enough


def _even(size_bytes: int) -> int:
    """Round up to a multiple of a power of two, about a 256th of the size: blocks at the top and
    blocks at the bottom then leave even room between them."""
    unit: int = 1 << max(size_bytes.bit_length() - 9, 0)
    return -(-size_bytes // unit) * unit


class _Target:
    """The search for a placement within one capacity, under all rules in turn."""

    def __init__(self, given: Shapes, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self._given = given
        self._impossible: set[State] = set()
        self._blocked: list[int] = []
        self._rules = self._turns()

    def _turns(self) -> Iterator[tuple[Choice, Rank, int]]:
        """Rules and their trials: plain rules get more each round, shaken rules are new each
        round."""
        few = trials = _TRIALS_PER_SHAPE * len(self._given.shapes)
        rng = random.Random(1)
        while True:
            for rank, choice in product(_ranks(self._given), Choice):
                yield choice, rank, trials
            for _ in range(_SHAKEN):
                for choice in (Choice.LOWEST, Choice.SLACK):
                    yield choice, _shaken(self._given, rng), few
            trials *= 2

    def take_turn(self, problem: ArenaProblem, bounds: _Bounds, work: Work) -> Verdict:
        """One rule, with the trials that it is due."""
        choice, rank, trials = next(self._rules)
        search = Skyline(self._given, self.capacity_bytes, choice, rank, self._impossible)
        verdict = search.run(trials, work)
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


def _search(problem: ArenaProblem, bounds: _Bounds, work: Work) -> None:
    """Close the bounds by skyline searches: at the bound itself, and between it and the best.

    Between them it tries the middle first, then ever closer to the best. For tied blocks the lower
    bound stays what it was.
    """
    given = shapes(problem)
    lower, closer = bounds.lower_bytes, 1
    targets: dict[int, _Target] = {}
    while not bounds.closed and lower < bounds.size_bytes and not work.over:
        best = bounds.size_bytes
        wanted = [max(lower, bounds.capacity_bytes)]
        if not bounds.capacity_bytes and best - lower > 1:
            wanted.append(best - max((best - lower) >> closer, 1))
            closer = closer % _CLOSEST + 1
        for capacity in wanted:
            target = targets.setdefault(capacity, _Target(given, capacity))
            verdict = Verdict.STOPPED
            for _ in range(_TURNS):
                if verdict is Verdict.STOPPED and not work.over:
                    verdict = target.take_turn(problem, bounds, work)
            if verdict is Verdict.IMPOSSIBLE:
                lower = max(lower, target.next_capacity_bytes)
                if not given.rigid:
                    bounds.lower_bytes = max(bounds.lower_bytes, lower)
            if verdict is not Verdict.STOPPED:
                closer = 1
                break


ALLOCATOR = Exact()
