"""Improves plans by moving one unit at a time to an adjacent stage.

`refine` weighs all models on all sticks anew for each move, `polish` the two stages that it touches
of one model, where there are thousands of operators.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.edgetpu.model.figures import StageOf, stage_figures
from toolchain.edgetpu.model.rules import Rules
from toolchain.edgetpu.plan.cuts import Model, period_ms
from toolchain.search import Work

MOST_ROUNDS = 20
_NANOSECONDS_PER_OPERATOR = 2500
"""Time to weigh a stage, for each of its operators."""
_SAME = 1e-12


def refine(
    models: Sequence[Model],
    stage_of: Sequence[StageOf],
    stages: int,
) -> tuple[StageOf, ...]:
    """A plan no worse than `stage_of`: moves that shorten the period and keep the rules, until none
    does.
    """
    best = tuple(stage_of)
    least = period_ms(models, best, stages)
    for _ in range(MOST_ROUNDS):
        improved = False
        for number, model in enumerate(models):
            rules = model.rules
            for unit, stage in _moves(rules, best[number], stages):
                moved = tuple(
                    stage if own == unit else old
                    for own, old in zip(rules.unit_of, best[number], strict=True)
                )
                tried = (*best[:number], moved, *best[number + 1 :])
                if not _meets(rules, moved, stages):
                    continue
                reached = period_ms(models, tried, stages)
                if reached < least:
                    best, least, improved = tried, reached, True
        if not improved:
            break
    return best


def _moves(rules: Rules, stage_of: StageOf, stages: int) -> list[tuple[int, int]]:
    """Units at the border of their stage, each with the neighbouring stage it may go to."""
    stage = dict(zip(rules.unit_of, stage_of, strict=True))
    moves = []
    for unit in range(rules.units):
        earliest = max((stage[b] for b in rules.predecessors[unit]), default=0)
        if stage[unit] > 0 and earliest < stage[unit]:
            moves.append((unit, stage[unit] - 1))
        latest = min((stage[u] for u in rules.successors[unit]), default=stages)
        if stage[unit] < stages - 1 and latest > stage[unit]:
            moves.append((unit, stage[unit] + 1))
    return moves


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


def polish(model: Model, stage_of: StageOf, stages: int, work: Work) -> StageOf:
    """A plan no worse than `stage_of`: units move to a neighbouring stage where that shortens the
    period, or leaves it and streams less, until none does or the work is done.
    """
    rules, cost = model.rules, model.cost
    cache = (cost.cache_bytes, cost.cache_bytes)
    members: list[list[int]] = [[] for _ in range(rules.units)]
    for index, unit in enumerate(rules.unit_of):
        members[unit].append(index)
    own = list(stage_of)
    at = [own[indices[0]] for indices in members]
    held = [[i for i, stage in enumerate(own) if stage == k] for k in range(stages)]
    anchors = [sum(at[unit] == k for unit in rules.anchored) for k in range(stages)]

    def weigh(operators: list[int]) -> tuple[float, int]:
        work.spend(_NANOSECONDS_PER_OPERATOR * len(operators))
        stage = stage_figures(
            model.graph, own, operators, cost, cache, model.balance, model.times_ms
        )
        return stage.time_ms, stage.streamed_bytes

    def value(figures: Sequence[tuple[float, int]]) -> tuple[float, int]:
        streamed = sum(size for _, size in figures)
        return cost.period_ms([time for time, _ in figures], streamed), streamed

    figures = [weigh(operators) for operators in held]
    least = value(figures)
    fixed = rules.first | rules.last
    improved = True
    while improved and not work.over:
        improved = False
        for unit in range(rules.units):
            if unit in fixed:
                continue
            here = at[unit]
            for there in (here - 1, here + 1):
                if not 0 <= there < stages or work.over:
                    continue
                if there < here and any(at[b] > there for b in rules.predecessors[unit]):
                    continue
                if there > here and any(at[u] < there for u in rules.successors[unit]):
                    continue
                if unit in rules.anchored and anchors[here] == 1:
                    continue
                moved = set(members[unit])
                left = [i for i in held[here] if i not in moved]
                joined = sorted((*held[there], *moved))
                for index in moved:
                    own[index] = there
                tried = list(figures)
                tried[here], tried[there] = weigh(left), weigh(joined)
                if value(tried) < (least[0] * (1 - _SAME), least[1]):
                    figures, least, improved = tried, value(tried), True
                    held[here], held[there], at[unit] = left, joined, there
                    if unit in rules.anchored:
                        anchors[here], anchors[there] = anchors[here] - 1, anchors[there] + 1
                    break
                for index in moved:
                    own[index] = here
    return tuple(own)
