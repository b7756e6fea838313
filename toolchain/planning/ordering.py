"""Decisions before operators are ordered: which rewrites pay, and which tensors are views."""

from __future__ import annotations

from toolchain import schedule
from toolchain.boards import Core
from toolchain.ir import Graph, MemoryProblem
from toolchain.ir.memory import peak_bytes
from toolchain.memory.problem import cheapest_views
from toolchain.ops.lowering import Lowered, lower
from toolchain.ops.preference import Preference
from toolchain.passes.identity_rewriting import lowest_peak

REWRITE_TRIAL_SECONDS = 2.0
"""Work limit for ordering a graph while rewrites are compared, in seconds' worth."""


def rewrite_identities(
    graph: Graph, core: Core, scheduler: str, preference: Preference = Preference.AUTO
) -> Graph:
    """Partition concatenations (SERENITY, 3.3) where that lowers the peak; every byte stays."""
    method = schedule.scheduler(scheduler)

    def peak(candidate: Graph) -> int:
        problem = choose_views(lower(candidate, core, preference))
        return method.schedule(problem, REWRITE_TRIAL_SECONDS).peak_bytes

    return lowest_peak(graph, peak)


def choose_views(lowered: Lowered) -> MemoryProblem:
    """All views in place, except those that cost more memory than they save in one cheap order."""

    def peak(problem: MemoryProblem) -> int:
        return peak_bytes(problem, schedule.scheduler("rpo").schedule(problem, None).order)

    return cheapest_views(lowered, peak)
