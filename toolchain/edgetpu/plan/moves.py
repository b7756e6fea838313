"""Improves plans by moving one unit at a time to an adjacent stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolchain.edgetpu.model.figures import StageOf
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.rules import Rules

MOST_ROUNDS = 20


def refine(
    models: Sequence[tuple[PipelineGraph, Rules]],
    stage_of: Sequence[StageOf],
    stages: int,
    value: Callable[[tuple[StageOf, ...]], float],
) -> tuple[StageOf, ...]:
    """A plan no worse than `stage_of`: moves that lower `value` and keep the rules, until none
    does.
    """
    best = tuple(stage_of)
    least = value(best)
    for _ in range(MOST_ROUNDS):
        improved = False
        for number, (_, rules) in enumerate(models):
            for unit, stage in _moves(rules, best[number], stages):
                moved = tuple(
                    stage if own == unit else old
                    for own, old in zip(rules.unit_of, best[number], strict=True)
                )
                tried = (*best[:number], moved, *best[number + 1 :])
                if _meets(rules, moved, stages) and (found := value(tried)) < least:
                    best, least, improved = tried, found, True
        if not improved:
            break
    return best


def _moves(rules: Rules, stage_of: StageOf, stages: int) -> list[tuple[int, int]]:
    """Units at the border of their stage, each with the neighbouring stage it may go to."""
    stage = dict(zip(rules.unit_of, stage_of, strict=True))
    latest_behind = [stages] * rules.units
    for unit in range(rules.units):
        for before in rules.predecessors[unit]:
            latest_behind[before] = min(latest_behind[before], stage[unit])
    found = []
    for unit in range(rules.units):
        earliest = max((stage[b] for b in rules.predecessors[unit]), default=0)
        if stage[unit] > 0 and earliest < stage[unit]:
            found.append((unit, stage[unit] - 1))
        if stage[unit] < stages - 1 and latest_behind[unit] > stage[unit]:
            found.append((unit, stage[unit] + 1))
    return found


def _meets(rules: Rules, stage_of: StageOf, stages: int) -> bool:
    stage = dict(zip(rules.unit_of, stage_of, strict=True))
    return (
        all(stage[unit] == 0 for unit in rules.first)
        and all(stage[unit] == stages - 1 for unit in rules.last)
        and len({stage[unit] for unit in rules.anchored}) == stages
        and all(
            stage[before] <= stage[unit]
            for unit in range(rules.units)
            for before in rules.predecessors[unit]
        )
    )
