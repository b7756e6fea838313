"""Reverse post-order: depth first from the last operators, predecessors in input order.

The baseline that SERENITY and HMCOS compare with; frameworks use it when they follow the file.
"""

from __future__ import annotations

from toolchain.ir import MemoryProblem, Schedule
from toolchain.ir.memory import peak_bytes
from toolchain.schedule._bounds import operator_bound_bytes
from toolchain.search import Stopwatch


class ReversePostOrder:
    """Reverse post-order as a scheduler."""

    name = "rpo"

    def schedule(
        self,
        problem: MemoryProblem,
        time_limit_seconds: float | None = None,
        budget_bytes: int | None = None,
    ) -> Schedule:
        """Linear in operators and edges: the time limit is never reached, the budget not used."""
        watch = Stopwatch()
        has_successor = {p for before in problem.predecessors for p in before}
        order: list[int] = []
        placed: set[int] = set()
        for root in (op for op in range(len(problem.ops)) if op not in has_successor):
            stack = [(root, iter(problem.predecessors[root]))]
            placed.add(root)
            while stack:
                op, remaining = stack[-1]
                following = next((p for p in remaining if p not in placed), None)
                if following is None:
                    order.append(op)
                    stack.pop()
                else:
                    placed.add(following)
                    stack.append((following, iter(problem.predecessors[following])))
        return Schedule(
            order=tuple(order),
            method=self.name,
            peak_bytes=peak_bytes(problem, order),
            lower_bound_bytes=operator_bound_bytes(problem),
            seconds=watch.seconds,
        )


SCHEDULER = ReversePostOrder()
