"""The last step of every scheduler: the independent checker computes the peak."""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.ir import MemoryProblem, Schedule
from toolchain.ir.memory import check_order, peak_bytes
from toolchain.schedule._bounds import operator_bound_bytes
from toolchain.search import Stopwatch


def checked(
    problem: MemoryProblem,
    order: Sequence[int],
    method: str,
    lower_bound_bytes: int,
    watch: Stopwatch,
) -> Schedule:
    """The schedule, with its peak computed by `ir.memory` and not by the scheduler itself.

    A bound on whole buffers does not hold where the problem counts only their live parts. `watch`
    has run since the start. Raises ValueError if the order is invalid, or beats a bound that was
    called proved; either is a defect of the scheduler.
    """
    check_order(problem, order)
    if problem.accesses:
        lower_bound_bytes = operator_bound_bytes(problem)
    peak = peak_bytes(problem, order)
    if peak < lower_bound_bytes:
        raise ValueError(f"{method}: peak {peak} B is below its lower bound {lower_bound_bytes} B")
    return Schedule(tuple(order), method, peak, lower_bound_bytes, watch.seconds)
