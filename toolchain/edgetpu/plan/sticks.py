"""How many sticks are worthwhile: plans for each number, with models together or apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.plan.planner import Options, PipelinePlan, plan
from toolchain.errors import InputError, ResultError
from toolchain.progress import Report, silent

PAYS = 0.05
"""A stick is worthwhile if it shortens the period by at least this share."""


def plans_up_to(
    graphs: Sequence[PipelineGraph],
    most: int,
    options: Options,
    report: Report = silent,
) -> tuple[PipelinePlan, ...]:
    """A plan for 1, 2, ... sticks, as far as the models can be cut."""
    found = []
    for stages in range(1, most + 1):
        report(f"{stages} of {most} sticks")
        try:
            found.append(plan(graphs, stages, options))
        except (InputError, ResultError):
            if stages == 1:
                raise
            break
    return tuple(found)


def best_of(plans: Sequence[PipelinePlan]) -> PipelinePlan:
    """The fewest sticks after which no larger number shortens the period by `PAYS`."""
    best = plans[0]
    for candidate in plans[1:]:
        if candidate.totals.period_ms < best.totals.period_ms * (1 - PAYS):
            best = candidate
    return best


@dataclass(frozen=True)
class Apart:
    """Models on sticks of their own: the number for each, and the time in which all give a
    result.
    """

    sticks: tuple[int, ...]
    plans: tuple[PipelinePlan, ...]
    period_ms: float


def apart(graphs: Sequence[PipelineGraph], stages: int, options: Options) -> Apart | None:
    """The best way to give each model its own sticks, with one hub for all; None with too few."""
    if stages < len(graphs):
        return None
    known: dict[tuple[int, int], PipelinePlan | None] = {}

    def own(number: int, sticks: int) -> PipelinePlan | None:
        if (number, sticks) not in known:
            try:
                known[number, sticks] = plan([graphs[number]], sticks, options)
            except (InputError, ResultError):
                known[number, sticks] = None
        return known[number, sticks]

    best: Apart | None = None
    for sticks in _shares(stages, len(graphs)):
        plans = [own(number, count) for number, count in enumerate(sticks)]
        present = tuple(found for found in plans if found is not None)
        if len(present) != len(graphs):
            continue
        streamed = sum(found.totals.streamed_bytes for found in present)
        period = max(
            *(found.totals.period_ms for found in present),
            streamed / options.cost.hub_bytes_per_ms,
        )
        if best is None or period < best.period_ms:
            best = Apart(sticks, present, period)
    return best


def _shares(stages: int, models: int) -> list[tuple[int, ...]]:
    """Every way to give `models` models at least one of `stages` sticks each, all given out."""
    if models == 1:
        return [(stages,)]
    return [
        (first, *rest)
        for first in range(1, stages - models + 2)
        for rest in _shares(stages - first, models - 1)
    ]
