"""Plans of models with thousands of operators: the least period, or a short one and a bound.

Where all cuts of a model can be listed, the best chain of them is the least period. Otherwise the
cuts of a few orders are tried: the order of the file, the depth-first one, and the one that passes
through the cuts that leave the fewest bytes open (`bounds.py`, which also bounds the period).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.edgetpu.model.cost import EdgeTpuCost
from toolchain.edgetpu.model.figures import StageOf, measure, operator_weights_ms, stage_figures
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.rules import Rules
from toolchain.edgetpu.plan import bounds as relaxed
from toolchain.edgetpu.plan import chains
from toolchain.edgetpu.plan.cuts import depth_first_order
from toolchain.edgetpu.plan.lattice import prefixes
from toolchain.search import Work

_LEVELS = tuple(0.02 * 1.5**step for step in range(8))
"""Masses of stages for which a bound counts bytes, as shares of a period."""
_PRICES = (0.0, 0.5, 1.0)
_NANOSECONDS_PER_OPERATOR = 2500
"""What it takes to weigh a stage, for each of its operators."""
_MOST_SECONDS = 2.0
"""Of work that moves operators between neighbouring stages."""
_SAME = 1e-12


@dataclass(frozen=True)
class Large:
    """A model and how its stages are weighed."""

    graph: PipelineGraph
    rules: Rules
    cost: EdgeTpuCost
    balance: str
    times_ms: tuple[float, ...] | None = None

    def cut_set(self, cuts: Sequence[int]) -> chains.CutSet:
        return chains.cut_set(self.graph, self.rules, cuts, self.cost, self.balance, self.times_ms)

    def masses(self, price: float = 0.0) -> relaxed.Masses:
        return relaxed.Masses(self.graph, self.rules, self.cost, self.balance, self.times_ms, price)

    def period_ms(self, stage_of: StageOf, stages: int) -> float:
        """As all figures of plans are counted."""
        _, totals = measure(
            [self.graph], [stage_of], stages, self.cost, self.balance, self.times_ms
        )
        return totals.period_ms

    @property
    def arithmetic_ms(self) -> float:
        return sum(self.times_ms or operator_weights_ms(self.graph, self.cost))


def exact(model: Large, cuts: Sequence[int], stages: int) -> StageOf | None:
    """The least period over all cuts of a model; None if it cannot have so many stages."""
    start = model.cost.call_ms + model.arithmetic_ms / stages
    for order in _orders(model.graph):
        some = model.cut_set(prefixes(model.graph, model.rules, order))
        found = chains.quick_period(some, stages, start)
        if found is not None:
            start = found[1] * (1 + _SAME)
            break
    every = model.cut_set(cuts)
    best = chains.least_period(every, stages, start)
    return None if best is None else chains.stage_of(every, best[0])


def bounded(model: Large, stages: int) -> tuple[StageOf, float] | None:
    """A plan with a short period, and a lower bound of all periods; None if none was found."""
    graph, rules = model.graph, model.rules
    start = model.cost.call_ms + model.arithmetic_ms / stages
    best: StageOf | None = None
    period = start
    for order in (*_orders(graph), None):
        if order is None:
            cuts = model.masses().segments([period * _LEVELS[-1]]).cuts
            order = relaxed.in_rising_order(graph, rules, cuts)
        some = model.cut_set(prefixes(graph, rules, order))
        found = chains.quick_period(some, stages, period)
        if found is None:
            continue
        if best is None or found[1] < period * (1 - _SAME):
            best, period, known = chains.stage_of(some, found[0]), found[1], some
    if best is None:
        return None
    found = chains.least_period(known, stages, period * (1 + _SAME))
    if found is not None and found[1] < period * (1 - _SAME):
        best = chains.stage_of(known, found[0])
    best = polish(model, best, stages, Work(_MOST_SECONDS))
    period = model.period_ms(best, stages)
    return best, min(period, bound_ms(model, stages, period))


def _orders(graph: PipelineGraph) -> tuple[Sequence[int], ...]:
    return tuple(range(len(graph.ops))), depth_first_order(graph)


def bound_ms(model: Large, stages: int, period_ms: float) -> float:
    """A lower bound of the period, at most `period_ms`, which a plan has."""
    bus = relaxed.bus_bound_ms(model.graph, stages, model.cost, model.balance)
    best = min(bus, period_ms)
    levels = [period_ms * share for share in _LEVELS]
    for price in _PRICES:
        masses = model.masses(price)
        if price and masses.stage_ms * stages + float(masses.weights.sum()) <= stages * best:
            continue  # without transfers it says less than is known
        best = max(best, masses.segments(levels).bound_ms(stages, period_ms))
        if best >= period_ms:
            break
    return best


def polish(model: Large, stage_of: StageOf, stages: int, work: Work) -> StageOf:
    """A plan no worse than `stage_of`: units move to a neighbouring stage where that shortens the
    period, or leaves it and streams less, until none does or the work is done.
    """
    rules, cost = model.rules, model.cost
    members: list[list[int]] = [[] for _ in range(rules.units)]
    for index, unit in enumerate(rules.unit_of):
        members[unit].append(index)
    behind: list[list[int]] = [[] for _ in range(rules.units)]
    for unit, found in enumerate(rules.predecessors):
        for before in found:
            behind[before].append(unit)
    own = list(stage_of)
    at = [own[found[0]] for found in members]
    held = [[i for i, stage in enumerate(own) if stage == k] for k in range(stages)]
    anchors = [sum(at[unit] == k for unit in rules.anchored) for k in range(stages)]

    def weigh(operators: list[int]) -> tuple[float, int]:
        work.spend(_NANOSECONDS_PER_OPERATOR * len(operators))
        found = stage_figures(
            model.graph, own, operators, cost, cost, model.balance, model.times_ms
        )
        return found.time_ms, found.streamed_bytes

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
                if there > here and any(at[b] < there for b in behind[unit]):
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
