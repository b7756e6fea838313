"""The placement as a constraint program, for CP-SAT: what the skyline search cannot decide."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from toolchain.ir import ArenaProblem


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
    deadline: float,
) -> Answer:
    """Look for a placement below `upper_bytes`. Offsets count in units of each block's alignment.

    Two blocks that live together stand in one of two orders, and the lower one keeps its distance:
    its size, or only the lead of a pair that may share; or an exact pair keeps just its lead.
    """
    from ortools.sat.python import cp_model  # takes a second to import, and is seldom needed

    seconds = deadline - time.perf_counter()
    if seconds <= 0:
        return Answer(None, lower_bytes)
    model = cp_model.CpModel()
    blocks = problem.blocks
    live = [i for i, b in enumerate(blocks) if b.start < b.end and b.size_bytes]
    shared = {(pair.dying, pair.born): pair for pair in problem.shared}
    size = model.new_int_var(lower_bytes, upper_bytes - 1, "size")
    offsets: dict[int, Any] = {}
    for i in live:
        unit = blocks[i].alignment_bytes
        last = max(0, upper_bytes - 1 - blocks[i].size_bytes) // unit
        granule = model.new_int_var(0, last, "")
        model.add_hint(granule, min(hint[i] // unit, last))
        offsets[i] = granule * unit
        model.add(offsets[i] + blocks[i].size_bytes <= size)
    for position, i in enumerate(live):
        for j in live[:position]:
            if min(blocks[i].end, blocks[j].end) <= max(blocks[i].start, blocks[j].start):
                continue
            below, above = model.new_bool_var(""), model.new_bool_var("")
            choices = [below, above]
            for low, high, literal in ((i, j, below), (j, i, above)):
                gap = blocks[low].size_bytes
                pair = shared.get((high, low))
                if pair is not None and pair.exact:
                    tied = model.new_bool_var("")
                    choices.append(tied)
                    model.add(offsets[high] == offsets[low] + pair.lead_bytes).only_enforce_if(tied)
                elif pair is not None:
                    gap = min(gap, pair.lead_bytes)
                model.add(offsets[high] >= offsets[low] + gap).only_enforce_if(literal)
            model.add_bool_or(choices)
    model.minimize(size)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Answer(None, upper_bytes)
    bound = max(lower_bytes, round(solver.best_objective_bound))
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(None, bound)
    found = [0] * len(blocks)
    for i in live:
        found[i] = solver.value(offsets[i])
    return Answer(tuple(found), bound)
