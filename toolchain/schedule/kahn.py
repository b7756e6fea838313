"""Kahn's algorithm: a queue gives operators in the order in which they become ready.

Kahn, "Topological sorting of large networks", CACM 1962. Its peak is the hard budget of SERENITY
(MLSys 2020, 3.2). Linear in operators and edges.
"""

from __future__ import annotations

from toolchain.ir import MemoryProblem, Schedule
from toolchain.schedule._bounds import operator_bound_bytes
from toolchain.schedule._result import checked
from toolchain.search import Stopwatch


def kahn_order(problem: MemoryProblem) -> list[int]:
    """Operators in the order of a first-in, first-out queue; ties by operator index."""
    waiting = [len(p) for p in problem.predecessors]
    successors: list[list[int]] = [[] for _ in problem.ops]
    for op, before in enumerate(problem.predecessors):
        for predecessor in before:
            successors[predecessor].append(op)
    order = [op for op, count in enumerate(waiting) if not count]
    for op in order:
        for successor in successors[op]:
            waiting[successor] -= 1
            if not waiting[successor]:
                order.append(successor)
    return order


class Kahn:
    """The queue as a scheduler."""

    name = "kahn"

    def schedule(
        self,
        problem: MemoryProblem,
        time_limit_seconds: float | None = None,
        budget_bytes: int | None = None,
    ) -> Schedule:
        """The order of the queue. The time limit is never reached, and the budget changes
        nothing.
        """
        watch = Stopwatch()
        order = kahn_order(problem)
        return checked(problem, order, self.name, operator_bound_bytes(problem), watch)


SCHEDULER = Kahn()
