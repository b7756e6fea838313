"""SERENITY: Ahn et al., "Ordering chaos: memory-aware scheduling of irregularly wired neural
networks for edge devices", MLSys 2020.

- Algorithm 1: dynamic programming over zero-indegree sets z with memoised signatures. For each z it
  keeps the order s whose peak mu_peak(s) is least. Scheduling u adds the bytes that u writes, sets
  mu_peak = max(mu_peak, mu), and subtracts what dies. Exact, in O(|V| 2^|V|).
- Divide and conquer (3.2): the graph is cut at single operators that every order passes. The parts
  are ordered one after another, and the optimum is the largest of the parts' optima.
- Algorithm 2, adaptive soft budgeting: states above a budget tau are dropped. tau begins at the
  hard budget, the peak of Kahn's order. A step that takes longer than T (here in counted work)
  reports 'timeout' and halves tau; 'no solution' moves tau half way back to its last value; this
  repeats until there is a solution.

At the work limit, parts that are not done keep Kahn's order, and nothing is proved about them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from toolchain.ir import MemoryProblem, Schedule
from toolchain.schedule._bounds import operator_bound_bytes
from toolchain.schedule._result import checked
from toolchain.schedule._sets import NoOrderError, OutOfWorkError, least_peak_order
from toolchain.schedule._steps import Steps
from toolchain.schedule.kahn import kahn_order
from toolchain.search import Stopwatch, Work

DEFAULT_TIME_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Serenity:
    """`divide` and `budgeting` switch two of the three parts off for ablations.

    `step_seconds` is the paper's T: the most work that one step of the search may take before the
    budget is lowered.
    """

    divide: bool = True
    budgeting: bool = True
    step_seconds: float = 1.0
    name: str = "serenity"

    def schedule(
        self,
        problem: MemoryProblem,
        time_limit_seconds: float | None = None,
        budget_bytes: int | None = None,
    ) -> Schedule:
        """Exact if it ends within the limit. The caller's budget is not used: tau is its own."""
        watch = Stopwatch()
        limit = DEFAULT_TIME_LIMIT_SECONDS if time_limit_seconds is None else time_limit_seconds
        work, steps = Work(limit), Steps(problem)
        everything = (1 << len(problem.ops)) - 1
        cuts = steps.cuts() if self.divide else [0, everything]
        kahn = kahn_order(problem)
        order: list[int] = []
        bound = operator_bound_bytes(problem)
        live = steps.start_bytes
        for start, end in itertools.pairwise(cuts):
            part = [op for op in kahn if (end & ~start) >> op & 1]
            try:
                ordered, peak, live = self._part(steps, part, start, live, work)
                bound = max(bound, peak)
            except OutOfWorkError:
                ordered = part
                _, _, live = steps.run(start, live, tuple(part))
            order += ordered
        return checked(problem, order, self.name, bound, watch)

    def _part(
        self, steps: Steps, part: list[int], start: int, live: int, work: Work
    ) -> tuple[list[int], int, int]:
        """The least peak of one part, by Algorithm 2 around Algorithm 1."""
        masks = [1 << op for op in part]
        before = [steps.before[op] for op in part]

        def run(unit: int, done: int, live_bytes: int) -> tuple[int, int, tuple[int, ...]]:
            step, after = steps.cost(done, live_bytes, part[unit])
            return step, after, (part[unit],)

        _, hard, _ = steps.run(start, live, tuple(part))
        tau, last = hard, hard
        refused = 0
        step_seconds = self.step_seconds if self.budgeting else math.inf
        while True:
            try:
                return least_peak_order(
                    masks,
                    before,
                    run,
                    start,
                    live,
                    tau if self.budgeting else hard,
                    work,
                    step_seconds,
                )
            except NoOrderError as error:
                refused = max(refused, error.beyond_bytes)
                last, tau = max(tau, last), max((tau + max(tau, last)) // 2, refused)
            except OutOfWorkError:
                if not self.budgeting or work.over:
                    raise
                if tau <= refused:
                    step_seconds *= 2
                last, tau = tau, max(tau // 2, refused)


SCHEDULER = Serenity()
