"""The default scheduler: an exact search that proves most graphs in milliseconds.

It can be stopped at any time, and closes in on the optimum from both sides. Four searches
(`_exact/search.py`) take turns. Two try the lower bound itself, from the front and from the back of
the graph, and raise it when they find it impossible. Two try limits between the bounds, and either
lower the best peak or raise the bound. Two theorems (docs/schedulers.md) keep the searches short: a
ready operator that frees what it adds runs at once, and so does a whole detour to a state that is
no higher than all on the way. From the back the same holds for the reversed graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.ir import MemoryProblem, Schedule
from toolchain.ir.memory import peak_bytes
from toolchain.schedule._bounds import operator_bound_bytes
from toolchain.schedule._exact.compiled import Compiled, compiled, unread_bytes
from toolchain.schedule._exact.machine import Machine
from toolchain.schedule._exact.search import Search, Verdict
from toolchain.schedule._result import checked
from toolchain.schedule.kahn import kahn_order
from toolchain.schedule.rpo import SCHEDULER as RPO
from toolchain.search import Stopwatch, Work

DEFAULT_TIME_LIMIT_SECONDS = 30.0

LARGEST_SEARCHED = 20_000
"""Most operators of a graph that is searched: the sets of all ancestors take memory with the square
of their number."""

_STATES_A_TURN = 400
_NS_A_PAIR = 10
"""Nanoseconds for a pair of operators, to tell which comes after which."""


@dataclass
class _Bounds:
    """The best order so far of `problem`, and a peak that none beats, `lower_bytes`."""

    problem: MemoryProblem
    order: list[int]
    lower_bytes: int
    budget_bytes: int | None

    def __post_init__(self) -> None:
        self.upper_bytes = peak_bytes(self.problem, self.order)

    def offer(self, order: list[int]) -> None:
        """Keep the order if it is the best so far."""
        peak = peak_bytes(self.problem, order)
        if peak < self.upper_bytes:
            self.order, self.upper_bytes = order, peak

    def raise_lower(self, bound_bytes: int) -> None:
        """No order is below `bound_bytes`, or below the best peak if that is less."""
        self.lower_bytes = max(self.lower_bytes, min(bound_bytes, self.upper_bytes))

    @property
    def closed(self) -> bool:
        """Whether the order is proved optimal, or within the budget."""
        goal = self.lower_bytes
        if self.budget_bytes is not None:
            goal = max(goal, self.budget_bytes)
        return self.upper_bytes <= goal


class _Searcher:
    """One of the searches that take turns: from the front or from the back of the graph.

    A prover tries the lower bound itself, and raises it as long as it is impossible. An improver
    tries for less than the best peak, and lowers it, or proves it optimal. `spent_states` counts
    what it has looked at, less the share of the gap between the bounds that it closed.
    """

    def __init__(self, problem: Compiled, backwards: bool, proves: bool) -> None:
        self._search = Search(problem)
        self._backwards = backwards
        self._proves = proves
        self.spent_states = 0.0

    @property
    def claim(self) -> float:
        """The search with the least claim goes next; improvers may spend twice as much."""
        return self.spent_states * (2 if self._proves else 1)

    def take_turn(self, bounds: _Bounds, work: Work) -> None:
        search = self._search
        limit = bounds.lower_bytes if self._proves else bounds.upper_bytes - 1
        if search.limit_bytes != limit:
            search.begin(limit)
        before, gap_bytes = search.states, bounds.upper_bytes - bounds.lower_bytes
        spent = search.spent
        verdict = search.run(_STATES_A_TURN)
        work.spend(search.spent - spent)
        self.spent_states += max(search.states - before, 1)
        if verdict is Verdict.FOUND:
            order = search.order
            bounds.offer(order[::-1] if self._backwards else order)
        elif verdict is Verdict.DEAD:
            beyond = search.blocked_bytes
            bounds.raise_lower(bounds.upper_bytes if beyond is None else beyond)
        self.spent_states *= (bounds.upper_bytes - bounds.lower_bytes) / gap_bytes


def _close(problem: Compiled, bounds: _Bounds, work: Work) -> None:
    """Bring the bounds together, or as near as the work allows.

    The next turn goes to the search that has spent the least for its gains. So a search that gains
    on this graph goes on, and none waits for ever.
    """
    if bounds.closed or work.over:
        return
    work.spend(_NS_A_PAIR * problem.count**2)
    mirror = problem.reversed()
    searchers = (
        _Searcher(problem, backwards=False, proves=False),
        _Searcher(mirror, backwards=True, proves=False),
        _Searcher(problem, backwards=False, proves=True),
        _Searcher(mirror, backwards=True, proves=True),
    )
    while not bounds.closed and not work.over:
        min(searchers, key=lambda searcher: searcher.claim).take_turn(bounds, work)


def _solve(problem: MemoryProblem, budget: int | None, work: Work) -> _Bounds:
    """Bounds on the problem, as close as the work allows. No graph input may be unread."""
    baselines = [list(RPO.schedule(problem).order), kahn_order(problem)]
    best = min(baselines, key=lambda order: peak_bytes(problem, order))
    bounds = _Bounds(problem, best, operator_bound_bytes(problem), budget)
    if not problem.ops:
        bounds.lower_bytes = bounds.upper_bytes
    if not bounds.closed and len(problem.ops) <= LARGEST_SEARCHED:
        _close(compiled(problem), bounds, work)
    return bounds


def _first_step(bounds: _Bounds, work: Work) -> None:
    """Inputs that nothing reads weigh on the first step alone: try each operator as the first.

    `bounds.lower_bytes` holds without them when this begins, and with them at the end.
    """
    problem = compiled(bounds.problem)
    machine = Machine(problem)
    unread = unread_bytes(bounds.problem)
    least: list[int] = []
    for first in sorted(machine.ready, key=lambda op: (machine.rise[op], op)):
        step_bytes = machine.live_bytes + machine.rise[first] + unread
        rest = _Bounds(
            bounds.problem,
            bounds.order,
            max(bounds.lower_bytes, step_bytes),
            bounds.budget_bytes,
        )
        _close(problem.after(first), rest, work)
        bounds.offer(rest.order)
        least.append(rest.lower_bytes)
    bounds.lower_bytes = min(bounds.upper_bytes, *least)


def _without_unread(problem: MemoryProblem) -> MemoryProblem:
    buffers = tuple(
        b if users or b.to_end else replace(b, size_bytes=0)
        for b, users in zip(problem.buffers, problem.users, strict=True)
    )
    return replace(problem, buffers=buffers)


class Auto:
    """The default scheduler; see the module."""

    name = "auto"

    def schedule(
        self,
        problem: MemoryProblem,
        time_limit_seconds: float | None = None,
        budget_bytes: int | None = None,
    ) -> Schedule:
        """The order with the smallest peak, or the best one found within the limit.

        With a budget it stops at the first order that meets it; if none can, at the optimum. Graphs
        of more than `LARGEST_SEARCHED` operators get the better of the two baselines.
        """
        watch = Stopwatch()
        limit = DEFAULT_TIME_LIMIT_SECONDS if time_limit_seconds is None else time_limit_seconds
        work = Work(limit)
        if problem.ops and unread_bytes(problem):
            relaxed = _solve(_without_unread(problem), budget_bytes, work)
            bounds = _Bounds(problem, relaxed.order, relaxed.lower_bytes, budget_bytes)
            if not bounds.closed and len(problem.ops) <= LARGEST_SEARCHED:
                _first_step(bounds, work)
        else:
            bounds = _solve(problem, budget_bytes, work)
        return checked(problem, bounds.order, self.name, bounds.lower_bytes, watch)


SCHEDULER = Auto()
