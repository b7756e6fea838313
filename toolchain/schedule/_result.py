"""How every scheduler ends: the independent checker has the last word."""

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
    """The answer, its peak computed by `ir.memory`, never by the method itself.

    A bound on whole buffers holds no longer where the problem counts what is live of them.

    `watch` runs since the start. Raises ValueError where the order is
    not one, or beats a bound that was called proved: a defect of the method.
    """
    check_order(problem, order)
    if problem.accesses:
        lower_bound_bytes = operator_bound_bytes(problem)
    peak = peak_bytes(problem, order)
    if peak < lower_bound_bytes:
        raise ValueError(f"{method}: peak {peak} B is below its lower bound {lower_bound_bytes} B")
    return Schedule(tuple(order), method, peak, lower_bound_bytes, watch.seconds)
