"""Runs CP-SAT so that one program always gives the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolchain.packages import SOLVER, lazy
from toolchain.search.work import Work

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy("ortools.sat.python.cp_model", SOLVER)


def solve(
    model: Any, work: Work, seconds_per_unit: float, most: float | None = None, **parameters: Any
) -> tuple[Any, Any]:
    """Solve a `cp_model.CpModel` within the remaining `work`. Returns the solver and its status.

    One thread, one seed, and no limit except CP-SAT's own count of its work, "deterministic time".
    `seconds_per_unit`: the seconds that one unit takes for programs like this one on one core.
    `most`: units, where fewer than the work allows are wanted. `parameters`: CP-SAT's, by name,
    including values of enumerations.
    """
    solver = cp_model.CpSolver()
    given = solver.parameters
    given.catch_sigint_signal = False  # else Ctrl-C kills Python ever after
    given.num_workers = 1
    given.random_seed = 1
    for name, value in parameters.items():
        setattr(given, name, getattr(given, value) if isinstance(value, str) else value)
    units = work.left_seconds / seconds_per_unit
    given.max_deterministic_time = units if most is None else min(units, most)
    status = solver.solve(model)
    work.spend_seconds(solver.response_proto.deterministic_time * seconds_per_unit)
    return solver, status
