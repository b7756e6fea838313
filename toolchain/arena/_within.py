"""Placing some blocks within a capacity, beside others that are fixed, by constraint programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolchain import search
from toolchain.arena._program import NS_A_DISTANCE, keep_apart
from toolchain.arena._separation import Separation
from toolchain.arena._skyline import Verdict
from toolchain.ir import Block
from toolchain.packages import SOLVER, lazy
from toolchain.search import Work

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy("ortools.sat.python.cp_model", SOLVER)

_QUICK_RESTARTS = "PORTFOLIO_WITH_QUICK_RESTART_SEARCH"
_SECONDS_PER_UNIT, _NS_A_PROGRAM = 2.5, 8_000_000
"""Seconds that one unit of CP-SAT's deterministic time takes; nanoseconds to build a program."""


class Program:
    """Programs for one capacity that share an effort, in CP-SAT's deterministic seconds."""

    def __init__(
        self,
        blocks: Sequence[Block],
        separation: Separation,
        capacity_bytes: int,
        effort: float,
        work: Work,
    ) -> None:
        self._blocks = blocks
        self._neighbours = separation.neighbours
        self._capacity = capacity_bytes
        self._left = effort
        self._work = work

    @property
    def exhausted(self) -> bool:
        return self._left <= 0 or self._work.over or bool(SOLVER.missing)

    def place(
        self,
        chosen: Sequence[int],
        fixed: Mapping[int, int],
        hint: Mapping[int, int],
        effort: float = math.inf,
        *,
        restart_often: bool = False,
    ) -> tuple[Verdict, dict[int, int]]:
        """Offsets of the `chosen` blocks beside the `fixed` ones; all others are left out.

        `effort` is the most to spend of the effort that is left. Presolving is off, because it
        takes longer than the search.
        """
        if self.exhausted:
            return Verdict.STOPPED, {}
        model = cp_model.CpModel()
        offsets: dict[int, Any] = {}
        for i in chosen:
            free = self._free(i, fixed)
            if not free:
                return Verdict.IMPOSSIBLE, {}
            unit = self._blocks[i].alignment_bytes
            granule = model.new_int_var_from_domain(cp_model.Domain.from_intervals(free), "")
            if i in hint:
                model.add_hint(granule, min(hint[i] // unit, free[-1][1]))
            offsets[i] = granule * unit
        for i in chosen:
            for j, intervals in self._neighbours[i]:
                if j in offsets and j < i:
                    self._work.spend(len(intervals) * NS_A_DISTANCE)
                    keep_apart(model, offsets[i] - offsets[j], intervals)
        self._work.spend(_NS_A_PROGRAM)
        solver, status = search.solve(
            model,
            self._work,
            _SECONDS_PER_UNIT,
            min(effort, self._left),
            cp_model_presolve=False,
            cp_model_probing_level=0,
            linearization_level=0,
            symmetry_level=0,
            search_branching=_QUICK_RESTARTS if restart_often else "AUTOMATIC_SEARCH",
        )
        self._left -= solver.response_proto.deterministic_time
        if status == cp_model.INFEASIBLE:
            return Verdict.IMPOSSIBLE, {}
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Verdict.STOPPED, {}
        return Verdict.FOUND, {i: solver.value(offset) for i, offset in offsets.items()}

    def _free(self, index: int, fixed: Mapping[int, int]) -> list[list[int]]:
        """Closed ranges of offsets, in units of its alignment, at which a block lies beside the
        fixed ones."""
        unit = self._blocks[index].alignment_bytes
        last = (self._capacity - self._blocks[index].size_bytes) // unit
        forbidden = sorted(
            (fixed[j] + low, fixed[j] + high)
            for j, intervals in self._neighbours[index]
            if j in fixed
            for low, high in intervals
        )
        ranges, begin = [], 0
        for low, high in forbidden:
            end = min(low // unit, last)
            if begin <= end:
                ranges.append([begin, end])
            begin = max(begin, -(-high // unit))
        return [*ranges, [begin, last]] if begin <= last else ranges
