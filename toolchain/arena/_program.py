"""The placement as a constraint program for CP-SAT, for what the skyline search cannot decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolchain import search
from toolchain.arena._separation import Separation
from toolchain.ir import ArenaProblem
from toolchain.ir.progress import Interval
from toolchain.packages import SOLVER, lazy
from toolchain.search import Work

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy("ortools.sat.python.cp_model", SOLVER)

NS_A_DISTANCE = 24_000
"""Nanoseconds to add the constraint that keeps two blocks apart."""
_SECONDS_PER_UNIT = 1.0
"""Seconds that one unit of CP-SAT's deterministic time takes."""


@dataclass(frozen=True)
class Answer:
    """`offsets` are None where nothing better than the hint was found."""

    offsets: tuple[int, ...] | None
    lower_bound_bytes: int


def solve(
    problem: ArenaProblem,
    hint: tuple[int, ...],
    lower_bytes: int,
    upper_bytes: int,
    work: Work,
) -> Answer:
    """Look for a placement below `upper_bytes`. Offsets count in units of each block's alignment.

    The distance of two blocks that are live together lies below, between or above the intervals
    that `Separation` forbids.
    """
    if work.over:
        return Answer(None, lower_bytes)
    model = cp_model.CpModel()
    blocks = problem.blocks
    live = [i for i, b in enumerate(blocks) if b.start < b.end and b.size_bytes]
    size = model.new_int_var(lower_bytes, upper_bytes - 1, "size")
    offsets: dict[int, Any] = {}
    for i in live:
        unit = blocks[i].alignment_bytes
        last = max(0, upper_bytes - 1 - blocks[i].size_bytes) // unit
        granule = model.new_int_var(0, last, "")
        model.add_hint(granule, min(hint[i] // unit, last))
        offsets[i] = granule * unit
        model.add(offsets[i] + blocks[i].size_bytes <= size)
    neighbours = Separation(problem).neighbours
    for i in live:
        for j, intervals in neighbours[i]:
            if j < i and blocks[j].size_bytes:
                work.spend(len(intervals) * NS_A_DISTANCE)
                keep_apart(model, offsets[i] - offsets[j], intervals)
    model.minimize(size)
    solver, status = search.solve(model, work, _SECONDS_PER_UNIT)
    if status == cp_model.INFEASIBLE:
        return Answer(None, upper_bytes)
    bound = max(lower_bytes, round(solver.best_objective_bound))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(None, bound)
    placed = [0] * len(blocks)
    for i in live:
        placed[i] = solver.value(offsets[i])
    return Answer(tuple(placed), bound)


def keep_apart(model: Any, distance: Any, forbidden: Sequence[Interval]) -> None:
    """Constrain the distance to lie in none of these open intervals."""
    if len(forbidden) == 1:  # one literal, and not two with a clause: several times as fast
        below = model.new_bool_var("")
        model.add(distance <= forbidden[0][0]).only_enforce_if(below)
        model.add(distance >= forbidden[0][1]).only_enforce_if(~below)
        return
    lowest = [None, *(high for _, high in forbidden)]
    highest = [*(low for low, _ in forbidden), None]
    choices = []
    for low, high in zip(lowest, highest, strict=True):
        chosen = model.new_bool_var("")
        choices.append(chosen)
        if low is not None:
            model.add(distance >= low).only_enforce_if(chosen)
        if high is not None:
            model.add(distance <= high).only_enforce_if(chosen)
    model.add_bool_or(choices)
