"""Iterative graph optimisation: Zhong et al., "Memory-aware scheduling for complex wired networks
with iterative graph optimization", ICCAD 2023.

- Algorithm 1, fusion (`_ilp/fusion.py`): units that keep the optimum, by theorems IV.1 and IV.2.
- The integer program (1)-(6) with pruning (7)-(10) (`_ilp/program.py`), on OR-tools CP-SAT.
- Algorithm 2, memory-aware acyclic partition: the graph is cut at states that every order passes,
  which keeps the optimum. Parts that are still too large for one program are cut where the best
  order so far has the fewest live bytes, which may lose it.

The result is proved if no cut of the second kind was needed and every program was solved to its
optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolchain.ir import MemoryProblem, Schedule
from toolchain.ir.memory import peak_bytes
from toolchain.schedule._bounds import operator_bound_bytes
from toolchain.schedule._exact.compiled import unread_bytes
from toolchain.schedule._ilp.fusion import fuse
from toolchain.schedule._result import checked
from toolchain.schedule._sets import OutOfWorkError
from toolchain.schedule._steps import Steps
from toolchain.schedule.kahn import kahn_order
from toolchain.schedule.rpo import SCHEDULER as RPO
from toolchain.search import Stopwatch, Work

DEFAULT_TIME_LIMIT_SECONDS = 60.0

Units = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Ilp:
    """`pruning`, `fusion` and `partition` can be switched off for ablations.

    A part with more than `largest_part` operators is cut.
    """

    pruning: bool = True
    fusion: bool = True
    partition: bool = True
    largest_part: int = 48
    name: str = "ilp"

    def schedule(
        self,
        problem: MemoryProblem,
        time_limit_seconds: float | None = None,
        budget_bytes: int | None = None,
    ) -> Schedule:
        """An order never worse than the baselines; a budget of the caller is not used."""
        watch = Stopwatch()
        limit = DEFAULT_TIME_LIMIT_SECONDS if time_limit_seconds is None else time_limit_seconds
        bound = operator_bound_bytes(problem)
        baselines = [list(RPO.schedule(problem).order), kahn_order(problem)]
        best = min(baselines, key=lambda order: peak_bytes(problem, order))
        if peak_bytes(problem, best) > bound:
            steps = Steps(problem)
            units = self._units(steps, unread_bytes(problem) > 0)
            order, bound = self._parts(
                steps, units, _regroup(steps, units, best), bound, Work(limit)
            )
            best = min(best, order, key=lambda o: peak_bytes(problem, o))
        return checked(problem, best, self.name, bound, watch)

    def _units(self, steps: Steps, unread: bool) -> Units:
        """Fused units; inputs that nothing reads weigh on one step, where no fusion is proved."""
        if self.fusion and not unread:
            return fuse(steps.resolved)
        return [(op,) for op in range(steps.resolved.count)]

    def _parts(
        self, steps: Steps, units: Units, order: list[int], bound: int, work: Work
    ) -> tuple[list[int], int]:
        """Solve part after part; the parts that no work is left for keep the order they had."""
        cuts, soft = self._cuts(steps, units, order)
        result: list[int] = []
        live = steps.start_bytes
        for index, (start, end) in enumerate(pairwise(cuts)):
            inside = end & ~start
            part = [op for op in order if inside >> op & 1]
            _, peak, after = steps.run(start, live, tuple(part))
            if peak > bound and not work.over:
                share = work.left_seconds / (len(cuts) - 1 - index)
                budget = Work(min(work.left_seconds, 2 * share))
                solved, proved = self._solve(steps, units, start, part, live, peak, budget)
                work.spend(budget.spent)
                _, reached, after = steps.run(start, live, tuple(solved))
                if reached <= peak:
                    part = solved
                if not soft:
                    bound = max(bound, min(proved, peak))
            result += part
            live = after
        return result, bound

    def _solve(
        self,
        steps: Steps,
        units: Units,
        start: int,
        part: list[int],
        live: int,
        peak: int,
        work: Work,
    ) -> tuple[list[int], int]:
        from toolchain.schedule._ilp.program import Program

        inside = set(part)
        inner = [unit for unit in units if unit[0] in inside]
        if len(inner) < 2:
            return part, peak
        try:
            answer = Program(steps, inner, start, self.pruning, work).solve(live, peak, part)
        except OutOfWorkError:
            return part, 0
        return answer.order or part, answer.bound_bytes

    def _cuts(self, steps: Steps, units: Units, order: list[int]) -> tuple[list[int], bool]:
        """Cuts, as sets of operators that have run, and whether any cut may lose the optimum.

        `order` keeps every unit together, so a cut behind the end of a unit parts none.
        """
        everything = (1 << len(order)) - 1
        if not self.partition:
            return [0, everything], False
        ends = {unit[-1] for unit in units}
        whole = [cut for cut in steps.cuts() if not cut or order[cut.bit_count() - 1] in ends]
        cuts = [0]
        soft = False
        for start, end in pairwise(whole):
            inner = self._soft_cuts(steps, ends, order, start, end)
            soft = soft or bool(inner)
            cuts += [*inner, end]
        return cuts, soft

    def _soft_cuts(
        self, steps: Steps, ends: set[int], order: list[int], start: int, end: int
    ) -> list[int]:
        """Cut a part that is too large where least is live, near its middle; then its halves."""
        part = [op for op in order if (end & ~start) >> op & 1]
        if len(part) <= self.largest_part:
            return []
        done, live = start, 0
        best: tuple[int, int] | None = None
        for position, op in enumerate(part[:-1], 1):
            _, live = steps.cost(done, live, op)
            done |= 1 << op
            central = len(part) // 4 <= position <= len(part) - len(part) // 4
            if central and op in ends:
                best = min(best or (live, done), (live, done))
        if best is None:
            return []
        middle = best[1]
        return [
            *self._soft_cuts(steps, ends, order, start, middle),
            middle,
            *self._soft_cuts(steps, ends, order, middle, end),
        ]


def _regroup(steps: Steps, units: Units, order: Sequence[int]) -> list[int]:
    """The order with the operators of every unit together, each unit as early as it may run."""
    place = {op: index for index, op in enumerate(order)}
    masks = [sum(1 << op for op in unit) for unit in units]
    needs = [sum(1 << p for p in _before(steps, unit)) for unit in units]
    waiting = sorted(range(len(units)), key=lambda u: place[units[u][-1]])
    done = 0
    result: list[int] = []
    while waiting:
        unit = next(u for u in waiting if not needs[u] & ~done & ~masks[u])
        waiting.remove(unit)
        done |= masks[unit]
        result += units[unit]
    return result


def _before(steps: Steps, unit: tuple[int, ...]) -> set[int]:
    return {p for op in unit for p in steps.resolved.predecessors[op]}


SCHEDULER = Ilp()
