"""HMCOS: Wang et al., "Hierarchical memory-constrained operator scheduling of neural architecture
search networks", DAC 2022.

Operators form sequences (3.1.1), sequences form groups (3.1.2), and dynamic programming over
zero-indegree sets orders these units (3.2). A group is ordered separately, and the result is cached
by its value context: which of the values that it shares with others the others no longer need. The
iterative algorithm (3.3) breaks up the groups whose values are live at the peak, and orders again
under the budget of the best peak, until no group is left at the peak.

The method itself proves nothing: sequences and groups may exclude the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.ir import MemoryProblem, Schedule
from toolchain.ir.memory import footprint, peak_bytes
from toolchain.schedule._bounds import operator_bound_bytes
from toolchain.schedule._hmcos.groups import Unit, hierarchy, needs, unit
from toolchain.schedule._hmcos.sequences import sequences
from toolchain.schedule._result import checked
from toolchain.schedule._sets import NoOrderError, OutOfWorkError, least_peak_order
from toolchain.schedule._steps import Steps
from toolchain.schedule.rpo import SCHEDULER as RPO
from toolchain.search import Stopwatch, Work

DEFAULT_TIME_LIMIT_SECONDS = 60.0


class _Orderer:
    """Orders units; remembers how a group is ordered in each value context."""

    def __init__(self, steps: Steps, work: Work) -> None:
        self._steps = steps
        self._work = work
        self._memory: dict[tuple[int, tuple[bool, ...]], tuple[int, tuple[int, ...]]] = {}
        self._shared: dict[int, list[int]] = {}

    def order(self, units: Sequence[Unit], budget_bytes: int) -> list[int]:
        """Order units within a budget. Raises NoOrderError and OutOfWorkError."""
        steps = self._steps

        def run(index: int, done: int, live: int) -> tuple[int, int, tuple[int, ...]]:
            chosen = units[index]
            ops = self._inside(chosen, done, live) if chosen.is_group else chosen.members[0]
            _, peak, after = steps.run(done, live, ops)
            return peak, after, ops

        masks = [u.mask for u in units]
        before = [needs(steps.resolved, mask) for mask in masks]
        best, _, _ = least_peak_order(
            masks, before, run, 0, steps.start_bytes, budget_bytes, self._work
        )
        return best

    def _inside(self, group: Unit, done: int, live: int) -> tuple[int, ...]:
        """A group's own order: reverse post-order where nothing beats it, else by the program."""
        context = self._context(group, done)
        known = self._memory.get((group.mask, context))
        if known is None:
            plain = tuple(op for chain in group.members for op in chain)
            known = self._remember(group, done, live, plain)
            self._memory[group.mask, context] = known
        return known[1]

    def _remember(
        self, group: Unit, done: int, live: int, plain: tuple[int, ...]
    ) -> tuple[int, tuple[int, ...]]:
        steps = self._steps
        _, peak, _ = steps.run(done, live, plain)
        masks = [sum(1 << op for op in chain) for chain in group.members]
        before = [needs(steps.resolved, mask) & group.mask for mask in masks]

        def run(index: int, now: int, bytes_now: int) -> tuple[int, int, tuple[int, ...]]:
            ops = group.members[index]
            _, inner, after = steps.run(now, bytes_now, ops)
            return inner, after, ops

        try:
            order, least, _ = least_peak_order(masks, before, run, done, live, peak - 1, self._work)
        except NoOrderError:
            return peak - live, plain
        return least - live, tuple(order)

    def _context(self, group: Unit, done: int) -> tuple[bool, ...]:
        """The context of a group: for each value shared with others, whether it is there before,
        and whether it dies inside."""
        steps = self._steps
        if group.mask not in self._shared:
            self._shared[group.mask] = [
                b
                for b, users in enumerate(steps.users)
                if users & group.mask and users & ~group.mask
            ]
        return tuple(
            flag
            for b in self._shared[group.mask]
            for flag in (
                bool(steps.users[b] & done),
                not steps.users[b] & ~done & ~group.mask,
            )
        )


@dataclass(frozen=True)
class Hmcos:
    """`grouping` off uses sequences alone, for ablations."""

    grouping: bool = True
    name: str = "hmcos"

    def schedule(
        self,
        problem: MemoryProblem,
        time_limit_seconds: float | None = None,
        budget_bytes: int | None = None,
    ) -> Schedule:
        """An order never worse than reverse post-order; with a budget, the first order within
        it.
        """
        watch = Stopwatch()
        limit = DEFAULT_TIME_LIMIT_SECONDS if time_limit_seconds is None else time_limit_seconds
        bound = operator_bound_bytes(problem)
        goal = max(bound, budget_bytes or 0)
        best = list(RPO.schedule(problem).order)
        steps = Steps(problem)
        chains = sequences(steps.resolved)
        units = hierarchy(steps.resolved, chains) if self.grouping else [unit([c]) for c in chains]
        orderer = _Orderer(steps, Work(limit))
        while True:
            budget = peak_bytes(problem, best)
            if budget <= goal:
                break
            try:
                best = orderer.order(units, budget - 1)
            except NoOrderError:
                groups = _at_the_peak(problem, best, units)
                if not groups:
                    break
                units = [
                    part
                    for u in units
                    for part in ([unit([c]) for c in u.members] if u in groups else [u])
                ]
            except OutOfWorkError:
                break
        return checked(problem, best, self.name, bound, watch)


def _at_the_peak(problem: MemoryProblem, order: Sequence[int], units: Sequence[Unit]) -> list[Unit]:
    """Groups that write or read a value that is live at a step with the peak."""
    steps = footprint(problem, order)
    peak = max(steps)
    hot = [step for step, size in enumerate(steps) if size == peak]
    users = 0
    for (start, end), touching in zip(problem.lifetimes(order), problem.users, strict=True):
        if any(start <= step < end for step in hot):
            users |= sum(1 << op for op in touching)
    return [u for u in units if u.is_group and u.mask & users]


SCHEDULER = Hmcos()
