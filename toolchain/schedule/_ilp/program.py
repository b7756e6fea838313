"""The integer program (1)-(6) of Zhong et al., ICCAD 2023, with its pruning (7)-(10).

Over steps t, with e[o,t] = 1 when operator o has run by the end of step t:

    (1)  e[o,t-1] <= e[o,t]                        what has run stays run
    (2)  sum over o of e[o,t] = t + 1              one operator a step
    (3)  e[o,t] <= e[p,t-1]                        for each predecessor p of o
    (4)  l[b,t] >= e[w,t] - e[u,t-1]               b is live from a writer w to its last user u
    (5)  M[t] = sum size[b] l[b,t] + sum scratch[o] (e[o,t] - e[o,t-1]) - sum saved
    (6)  M[t] <= P, minimise P

A fused unit has variables for its first operator only: the j-th runs j steps later. Pruning by
topology fixes e[o,t] = 0 for t < asap(o) and 1 for t >= alap(o) (7, 8), and with them the
liveness of buffers before their first writer and after their last user (9, 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from toolchain.packages import SOLVER, lazy
from toolchain.schedule._sets import OutOfWorkError
from toolchain.schedule._steps import Steps
from toolchain.search import Work, solve

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy("ortools.sat.python.cp_model", SOLVER)

_NS_A_TERM = 2500
"""To write down an operator, or a buffer, at a step of the program."""
_SECONDS_PER_UNIT = 1.7
"""Seconds that one unit of CP-SAT's deterministic time takes."""

Literal: TypeAlias = "cp_model.IntVar | int"


@dataclass(frozen=True)
class Answer:
    """An order of the part's operators (None if none was found), and a bound on its peak."""

    order: list[int] | None
    bound_bytes: int


class Program:
    """One part of the graph: the operators of `units`, after exactly `start` has run."""

    def __init__(
        self,
        steps: Steps,
        units: Sequence[tuple[int, ...]],
        start: int,
        pruning: bool,
        work: Work,
    ) -> None:
        """Write the program down. Raises OutOfWorkError where the work ends before that is done."""
        self._steps = steps
        self._problem = steps.resolved
        self._units = units
        self._start = start
        self._pruning = pruning
        self._work = work
        self._ops = [op for unit in units for op in unit]
        self._inside = sum(1 << op for op in self._ops)
        self._count = len(self._ops)
        self._place = {op: (u, j) for u, unit in enumerate(units) for j, op in enumerate(unit)}
        self._model = cp_model.CpModel()
        self._begun = [self._begun_row(unit) for unit in units]
        self._sequence()

    def _charge(self, terms: int) -> None:
        self._work.spend(terms * _NS_A_TERM)
        if self._work.over:
            raise OutOfWorkError

    def _begun_row(self, unit: tuple[int, ...]) -> list[Literal]:
        """Whether the unit's first operator has run, by step."""
        latest = self._count - len(unit)
        earliest = 0
        if self._pruning:
            problem = self._problem
            mask = sum(1 << op for op in unit)
            above = below = 0
            for op in unit:
                above |= problem.ancestors[op]
                below |= problem.descendants[op]
            earliest = (above & self._inside & ~mask).bit_count()
            latest -= (below & self._inside & ~mask).bit_count()
        return [
            0 if t < earliest else 1 if t >= latest else self._model.new_bool_var("")
            for t in range(self._count)
        ]

    def _ran(self, op: int, step: int) -> Literal:
        """The variable e[op, step]."""
        if op not in self._place:
            return self._start >> op & 1
        unit, offset = self._place[op]
        return self._begun[unit][step - offset] if step >= offset else 0

    def _sequence(self) -> None:
        model, problem = self._model, self._problem
        for row in self._begun:
            for before, now in pairwise(row):
                if not (isinstance(before, int) and isinstance(now, int)):
                    model.add(before <= now)
        for t in range(self._count):
            self._charge(self._count)
            model.add(sum(self._ran(op, t) for op in self._ops) == t + 1)
        for op in self._ops:
            self._charge(self._count * len(problem.predecessors[op]))
            for predecessor in problem.predecessors[op]:
                if self._inside >> predecessor & 1:
                    for t in range(self._count):
                        self._at_most(self._ran(op, t), self._ran(predecessor, t - 1) if t else 0)

    def _at_most(self, low: Literal, high: Literal) -> None:
        if isinstance(low, int) and isinstance(high, int):
            assert low <= high
        else:
            self._model.add(low <= high)

    def solve(self, live_bytes: int, budget_bytes: int, hint: Sequence[int]) -> Answer:
        """Minimise the peak, at most `budget_bytes`, from `live_bytes` live at the start.

        Raises OutOfWorkError as the constructor does.
        """
        model, problem = self._model, self._problem
        moving = sorted({b for op in self._ops for b in problem.uses[op]})
        still = live_bytes
        for b in moving:
            users = self._steps.users[b]
            if problem.early[b] or users & self._start:
                still -= problem.sizes[b]
        uses = len(self._ops) + sum(len(problem.users[b]) for b in moving)
        peak = model.new_int_var(0, max(budget_bytes, 0), "peak")
        for t in range(self._count):
            self._charge(2 * uses)
            load: list[cp_model.LinearExpr | int] = [still]
            for b in moving:
                load.append(problem.sizes[b] * self._live(b, t))
            for op in self._ops:
                if problem.scratch_bytes[op]:
                    load.append(
                        problem.scratch_bytes[op] * (self._ran(op, t) - self._ran_before(op, t))
                    )
            load += self._savings(t)
            model.add(sum(load) <= peak)
        model.minimize(peak)
        self._hint(hint)
        solver, status = solve(model, self._work, _SECONDS_PER_UNIT)
        if status == cp_model.INFEASIBLE:
            return Answer(None, budget_bytes + 1)
        bound = int(solver.best_objective_bound)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Answer(None, max(bound, 0))
        when = {
            op: next(t for t in range(self._count) if self._value(solver, self._ran(op, t)))
            for op in self._ops
        }
        return Answer(sorted(self._ops, key=lambda op: when[op]), bound)

    def _ran_before(self, op: int, step: int) -> Literal:
        return self._ran(op, step - 1) if step or op not in self._place else 0

    def _live(self, buffer: int, step: int) -> Literal:
        """The variable l[buffer, step], constrained from below by (4)."""
        problem, users = self._problem, self._problem.users[buffer]
        begun: list[Literal] = [1] if problem.early[buffer] else [self._ran(u, step) for u in users]
        ends: list[Literal] = (
            [0] if problem.late[buffer] else [self._ran_before(u, step) for u in users]
        )
        begun, ends = _decisive(begun, 1), _decisive(ends, 0)
        if not ends or not begun:
            return 0
        if all(isinstance(literal, int) for literal in (*begun, *ends)):
            return 1
        live = self._model.new_bool_var("")
        for start in begun:
            for end in ends:
                self._model.add(live >= start - end)
        return live

    def _savings(self, step: int) -> list[cp_model.LinearExpr | int]:
        problem, model = self._problem, self._model
        terms: list[cp_model.LinearExpr | int] = []
        taken: dict[tuple[int, str, int], list[cp_model.IntVar]] = {}
        for saving in problem.savings:
            if saving.op not in self._place:
                continue
            used = model.new_bool_var("")
            model.add(used <= self._ran(saving.op, step) - self._ran_before(saving.op, step))
            for user in problem.users[saving.dying]:
                if user != saving.op:
                    model.add(used <= self._ran_before(user, step))
            for user in problem.users[saving.born]:
                if user != saving.op:
                    model.add(used <= 1 - self._ran_before(user, step))
            taken.setdefault((saving.op, "dying", saving.dying), []).append(used)
            taken.setdefault((saving.op, "born", saving.born), []).append(used)
            terms.append(-saving.size_bytes * used)
        for group in taken.values():
            if len(group) > 1:
                model.add(sum(group) <= 1)
        return terms

    def _hint(self, order: Sequence[int]) -> None:
        place = {op: t for t, op in enumerate(order)}
        for unit, row in zip(self._units, self._begun, strict=True):
            for t, variable in enumerate(row):
                if not isinstance(variable, int):
                    self._model.add_hint(variable, int(place[unit[0]] <= t))

    @staticmethod
    def _value(solver: cp_model.CpSolver, literal: Literal) -> int:
        return literal if isinstance(literal, int) else int(solver.value(literal))


def _decisive(literals: Sequence[Literal], strongest: int) -> list[Literal]:
    """Drop constants that decide nothing; one that decides all stands alone."""
    if any(isinstance(literal, int) and literal == strongest for literal in literals):
        return [strongest]
    return [literal for literal in literals if not isinstance(literal, int)]
