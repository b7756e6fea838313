"""Several models on the same sticks: each in turn, or over all combinations of their cuts.

A stick begins at one cut of each model and ends at another. For a period in question, dynamic
programming finds the fewest streamed bytes with which every combination of cuts can be reached
after each number of sticks, if no stick takes longer. A period that no chain reaches is excluded.

All models but the last are one matrix of stages. The last model's stages are walked along its cuts,
layer by layer, with the cache that the other models leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TypeVar

import numpy as np

from toolchain.edgetpu.model.figures import EdgeTpuCost, StageOf, layer_bytes
from toolchain.edgetpu.plan.chains import FAR, StageLoad, least_period_with
from toolchain.edgetpu.plan.cuts import (
    Bools,
    Cuts,
    Floats,
    Integers,
    cached_bytes,
    measured,
    period_ms,
)
from toolchain.edgetpu.plan.demand import Assigned, Assignment, Proof
from toolchain.search import Work

MOST_PAIRS = 4_000_000
"""Limit on pairs of combinations of cuts, of all models but the last."""
MOST_LAST_CUTS = 600
"""Limit on the cuts of the last model."""
_NANOSECONDS = 4
"""For each stage that is walked over, and as much again for each number of sticks before it."""
_STRICTLY = 1e-9
Numbers = TypeVar("Numbers", Floats, Integers)
_MOST_RUNS = 24
_LEAST_GAIN = 1e-9
_MOST_ROUNDS = 12


@dataclass(frozen=True)
class _Together:
    """The stages of some models between all combinations of their cuts, (from, to).

    `cuts`: of each combination, the cut of each model.
    """

    cuts: Integers
    alone_ms: Floats
    arithmetic_ms: Floats
    params: Integers
    missed: Integers
    free: Integers
    valid: Bools


def small_enough(models: Sequence[Cuts]) -> bool:
    """Whether the combinations of the cuts of these models can be listed."""
    combined = int(np.prod([len(cuts) for cuts in models[:-1]], dtype=float))
    return combined * combined <= MOST_PAIRS and len(models[-1]) <= MOST_LAST_CUTS


def least_joint_period(
    models: Sequence[Cuts],
    stages: int,
    start: Assigned,
    work: Work,
) -> Assignment:
    """The least period over all cuts of the models, if the work allows, else the best plan so far,
    which is `start` or better, with a lower bound.
    """
    search = _Search(tuple(models), stages)
    best, period = start, search.period_ms(start)
    low = 0.0
    target = period * (1 - _STRICTLY)
    for _ in range(_MOST_RUNS):
        reached = search.reach(target, work)
        if reached is None:
            break
        plan = search.plan(reached, target)
        if plan is None:
            low = target
        else:
            reached_ms = search.period_ms(plan)
            if reached_ms < period:
                best, period = plan, reached_ms
            # With stages no longer than the target, nothing streams less.
            least = int(reached[stages, -1, -1]) / search.cost.hub_bytes_per_ms
            low = max(low, min(least, target))
        last = period * (1 - _STRICTLY)
        if low >= last:
            low = period
            break
        target = last if plan is None or last - low < 1e-3 * last else (low + last) / 2
    return Assignment(best, (Proof("period", period, low),))


@dataclass(frozen=True)
class _Search:
    models: tuple[Cuts, ...]
    stages: int

    @property
    def last(self) -> Cuts:
        return self.models[-1]

    @property
    def cost(self) -> EdgeTpuCost:
        return self.last.model.cost

    def period_ms(self, stage_of: Assigned) -> float:
        return period_ms([cuts.model for cuts in self.models], stage_of, self.stages)

    @cached_property
    def together(self) -> _Together:
        """All models but the last; it begins with no model, whose one stage leaves the cache."""
        no_time, no_bytes = np.zeros((1, 1)), np.zeros((1, 1), np.int64)
        cache = np.full((1, 1), self.cost.cache_bytes)
        always, no_cuts = np.ones((1, 1), bool), np.zeros((1, 0), np.int64)
        none = _Together(no_cuts, no_time, no_time, no_bytes, no_bytes, cache, always)
        return reduce(_joined, self.models[:-1], none)

    def _most_streamed(self, target: float) -> Integers:
        """[sticks used, combination, cut of the last]: bytes that may be streamed by then; -1 where
        the sticks left cannot do the rest.
        """
        others, last, cost = self.together, self.last, self.cost
        params = others.params[:, -1][:, None] + last.costs.params[:, -1][None, :]
        arithmetic = others.arithmetic_ms[:, -1][:, None] + last.costs.arithmetic_ms[:, -1][None, :]
        left = np.arange(self.stages, -1, -1)[:, None, None]
        spilled = np.maximum(0, params[None] - left * cost.cache_bytes)
        streaming = spilled / cost.stream_bytes_per_ms
        room = left * (target - len(self.models) * cost.call_ms)
        most = target * cost.hub_bytes_per_ms
        fits = (arithmetic[None] + streaming <= room * (1 + _STRICTLY)) & (spilled <= most)
        return np.where(fits, int(most) - spilled, -1)

    def reach(self, target: float, work: Work) -> Integers | None:
        """The fewest streamed bytes of each number of sticks to each combination of cuts, with no
        stick longer than `target`; None where the work is done before.
        """
        others, last = self.together, self.last
        count, cuts = len(others.cuts), len(last)
        distance = np.full((self.stages + 1, count, cuts), FAR)
        distance[0, 0, 0] = 0
        most = self._most_streamed(target)
        valid = others.valid & (others.alone_ms <= target)
        for begin in range(cuts - 1):
            here = distance[:, :, begin]
            here[here > most[:, :, begin]] = FAR
            rows = np.flatnonzero((here[: self.stages] < FAR).any(0))
            if not rows.size:
                continue
            columns = np.flatnonzero(valid[rows].any(0))
            if not columns.size:
                continue
            used = [k for k in range(self.stages) if (here[k, rows] < FAR).any()]
            at = np.ix_(rows, columns)
            alone = np.where(valid[at], others.alone_ms[at], np.inf)
            least = float(alone.min())
            for end, missed, _ in self._walk(begin, others.missed[at], others.free[at]):
                work.spend(_NANOSECONDS * alone.size)
                own = last.costs.time_without_streams[begin, end]
                if not last.valid[begin, end] or least + own > target:
                    continue
                work.spend(_NANOSECONDS * alone.size * len(used))
                time_ms = alone + (own + missed / self.cost.stream_bytes_per_ms)
                weights = np.where(time_ms <= target, missed, FAR)
                for k in used:
                    reached = (here[k, rows][:, None] + weights).min(0)
                    behind = distance[k + 1, :, end]
                    behind[columns] = np.minimum(behind[columns], reached)
            if work.over:
                return None
        distance[distance > FAR] = FAR
        return distance

    @cached_property
    def _places(self) -> dict[int, int]:
        return {cut: place for place, cut in enumerate(self.last.sets)}

    @cached_property
    def _units_of_op(self) -> list[int]:
        """How many operators the unit of each operator has."""
        unit_of = self.last.model.rules.unit_of
        return [unit_of.count(unit) for unit in unit_of]

    def _steps(self, begin: int) -> list[tuple[int, int | None, tuple[int, ...]]]:
        """The cuts behind `begin`: each with the one before its last layers, and their bytes."""
        last = self.last
        graph, nested = last.model.graph, last.costs.nested
        steps = []
        for end in np.flatnonzero(nested[begin]):
            inside = np.flatnonzero(last.member[end] & ~last.member[begin])
            newest = int(inside[-1])
            unit = last.model.rules.unit_of[newest]
            parent = None
            if self._units_of_op[newest] == 1:
                parent = self._places.get(last.sets[end] & ~(1 << unit))
            if parent is not None and parent != begin and not nested[begin, parent]:
                parent = None
            sizes = layer_bytes(graph, inside.tolist(), last.model.balance)
            taken = sizes if parent is None else sizes[-1:]
            steps.append((int(end), parent, tuple(size for size in taken if size)))
        return steps

    def _walk(
        self, begin: int, missed: Integers, free: Integers
    ) -> Iterator[tuple[int, Integers, Integers]]:
        """For each cut behind `begin`, what all models of a stage stream and leave free; `missed`,
        `free`: those before the last, for each of their stages.
        """
        steps = self._steps(begin)
        uses: dict[int, int] = {}
        for _, parent, _ in steps:
            if parent is not None:
                uses[parent] = uses.get(parent, 0) + 1
        known = {begin: (missed, free)}
        for end, parent, sizes in steps:
            streamed, left = known[begin if parent is None else parent]
            for size in sizes:
                held = cached_bytes(size, left, self.cost)
                left, streamed = left - held, streamed + (size - held)
            if parent is not None and parent != begin:
                uses[parent] -= 1
                if not uses[parent]:
                    del known[parent]
            if end in uses:
                known[end] = (streamed, left)
            yield end, streamed, left

    def plan(self, reached: Integers, target: float) -> Assigned | None:
        """A chain of the fewest streamed bytes; None if there is none within the target."""
        others, last, cost = self.together, self.last, self.cost
        if reached[self.stages, -1, -1] > target * cost.hub_bytes_per_ms:
            return None
        at, cut = len(others.cuts) - 1, len(last) - 1
        chain = [(at, cut)]
        for used in range(self.stages - 1, -1, -1):
            rows, begins = np.nonzero(reached[used] < FAR)
            kept = others.valid[rows, at] & last.valid[begins, cut]
            rows, begins = rows[kept], begins[kept]
            ends = np.full(rows.size, cut)
            missed, _ = last.costs.first_fit(begins, ends, others.free[rows, at])
            missed = missed + others.missed[rows, at]
            own = last.costs.time_without_streams[begins, ends]
            time_ms = others.alone_ms[rows, at] + (own + missed / cost.stream_bytes_per_ms)
            sums = np.where(time_ms <= target, reached[used, rows, begins] + missed, FAR)
            best = int(np.argmin(sums))
            if sums[best] != reached[used + 1, at, cut]:
                raise AssertionError("two ways to count streamed bytes differ")
            at, cut = int(rows[best]), int(begins[best])
            chain.append((at, cut))
        chain.reverse()
        columns = others.cuts[[combination for combination, _ in chain]].T
        chains = [[int(own) for own in column] for column in columns]
        chains.append([own for _, own in chain])
        return tuple(cuts.stage_of(own) for cuts, own in zip(self.models, chains, strict=True))


def _joined(others: _Together, cuts: Cuts) -> _Together:
    """One model more, behind the others."""
    count, own = len(others.cuts), len(cuts)
    combined = count * own
    before, after = (part.ravel() for part in np.indices((count, own)))

    def added(some: Numbers, more: Numbers) -> Numbers:
        return some[np.ix_(before, before)] + more[np.ix_(after, after)]

    valid = others.valid[np.ix_(before, before)] & cuts.valid[np.ix_(after, after)]
    rows, columns = np.nonzero(valid)
    missed, free = (np.zeros((combined, combined), np.int64) for _ in range(2))
    left = others.free[before[rows], before[columns]]
    begins, ends = after[rows], after[columns]
    streamed, remains = cuts.costs.first_fit(begins, ends, left)
    missed[rows, columns] = streamed + others.missed[before[rows], before[columns]]
    free[rows, columns] = remains
    return _Together(
        np.column_stack([others.cuts[before], after]),
        added(others.alone_ms, cuts.costs.time_without_streams),
        added(others.arithmetic_ms, cuts.costs.arithmetic_ms),
        added(others.params, cuts.costs.params),
        missed,
        free,
        valid,
    )


def improve(models: Sequence[Cuts], stage_of: Sequence[StageOf], stages: int) -> Assigned:
    """A plan with a period no longer than that of `stage_of`, which no single model can shorten.

    Each model in turn is replanned by enumeration of its cuts, for the cache and time that the
    others leave on each stick, until none gains.
    """
    best, weighed = tuple(stage_of), [cuts.model for cuts in models]
    period = period_ms(weighed, best, stages)
    idle = 0
    for turn in range(_MOST_ROUNDS * len(models)):
        number = turn % len(models)
        loads = _loads(models, best, stages, number)
        chosen = least_period_with(models[number], loads, period * (1 + 1e-12))
        idle += 1
        if chosen is not None:
            tried = (*best[:number], chosen, *best[number + 1 :])
            reached = period_ms(weighed, tried, stages)
            if reached < period * (1 - _LEAST_GAIN):
                best, period, idle = tried, reached, 0
        if idle == len(models):
            break
    return best


def _loads(
    models: Sequence[Cuts], stage_of: Sequence[StageOf], stages: int, number: int
) -> list[StageLoad]:
    """The loads that all models but `number` put on each stick."""
    weighed = [cuts.model for cuts in models]
    cost = weighed[0].cost
    figures, _ = measured(weighed, stage_of, stages)
    loads = []
    for stage in range(stages):
        before = [figures[other][stage] for other in range(number)]
        behind = [figures[other][stage] for other in range(number + 1, len(models))]
        fixed_ms = sum(
            cost.fixed_ms(part.time_ms, part.streamed_bytes) for part in (*before, *behind)
        )
        later = [
            size
            for model, part in zip(weighed[number + 1 :], behind, strict=True)
            for size in layer_bytes(model.graph, part.operators, model.balance)
            if size
        ]
        loads.append(
            StageLoad(
                cost.cache_bytes - sum(p.param_bytes - p.streamed_bytes for p in before),
                fixed_ms,
                sum(part.streamed_bytes for part in before),
                tuple(later),
            )
        )
    return loads
