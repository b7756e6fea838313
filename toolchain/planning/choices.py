"""`--pareto` and `--choice`: choices of RAM, flash and time, and the plan of one.

Each choice is one way to split the network, with the quickest kernels or with the smallest. The
search for them reads no clock, so that a choice is the same plan whenever it is asked for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from toolchain.boards import Board
from toolchain.cost import CostModel
from toolchain.errors import InputError
from toolchain.memory.firmware_size import estimated_need
from toolchain.memory.plan import Plan
from toolchain.memory.problem import memory_problem
from toolchain.partition.front import Front, Point
from toolchain.planning.copies import copy_constants
from toolchain.planning.flash import flash_spent
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.placing import over_banks
from toolchain.planning.room import spend_room
from toolchain.planning.splitting import split_front, split_plan
from toolchain.progress import Report
from toolchain.report.front import FrontRow, Split
from toolchain.report.latency import Latency, predict_latency

_PLACING_SECONDS = 0.3
"""Work limit of placing the tensors of one choice: there are dozens."""


@dataclass(frozen=True)
class Way:
    """A point of the front of an unsplit plan."""

    whole: Plan
    front: Front
    point: Point


@dataclass(frozen=True)
class Choices:
    """`ways`: from the first, the unsplit plan with the quickest kernels."""

    ways: tuple[Way, ...]
    target: Board
    options: PlanOptions
    costs: CostModel
    report: Report

    @property
    def front(self) -> Front:
        """The front with the quickest kernels."""
        return self.ways[0].front

    def plan(self, number: int) -> Plan:
        """The plan of the choice of that number, from 1. Raises InputError where there is none."""
        if not 1 <= number <= len(self.ways):
            raise InputError(
                f"--choice {number}: there are choices 1 to {len(self.ways)}; --pareto lists them"
            )
        way, options = self.ways[number - 1], self.options
        plan = way.whole
        if way.point.schemes:
            limit = min(_PLACING_SECONDS, options.time_limit_seconds or math.inf)
            limited = replace(options, time_limit_seconds=limit)
            made = split_plan(plan, way.front, way.point, limited)
            problem = memory_problem(made.lowered, progressive=True)
            made = over_banks(made, self.target, problem, options, self.report)
            made = spend_room(made, self.costs, 0)
            plan = replace(
                made,
                unsplit_bytes=plan.arena.size_bytes,
                removed=plan.removed,
                spent=flash_spent(made, self.costs),
            )
        return copy_constants(plan, self.target, options)

    def rows(self, planned: Plan) -> tuple[tuple[FrontRow, ...], Latency]:
        """The choices that no other is better than, each with the figures of its plan, and the
        latency of the first, against which slowdowns are. `planned`: the plan of the options alone,
        which is choice 0 among them, unless one of them is better.
        """
        plans, splits, count = [planned], [_split_of(planned)], len(self.ways)
        for number in range(1, count + 1):
            self.report(f"placing tensors of choice {number} of {count}", number - 1, count)
            plans.append(self.plan(number))
            schemes = self.ways[number - 1].point.schemes
            splits.append(tuple(Split(s.ops, s.count, s.mode.value) for s in schemes))
        times = [predict_latency(plan, self.costs) for plan in plans]
        needs = [estimated_need(plan) for plan in plans]
        figures = [
            (need.ram_bytes, need.flash_bytes, time.total)
            for need, time in zip(needs, times, strict=True)
        ]
        whole = times[1]
        rows = tuple(
            FrontRow(
                peak_bytes=plans[at].arena.size_bytes,
                slowdown=time / (whole.total or 1) - 1,
                splits=splits[at],
                flash_bytes=flash_bytes,
                ram_bytes=ram_bytes,
                choice=at,
            )
            for at in _undominated(figures)
            for ram_bytes, flash_bytes, time in [figures[at]]
        )
        return rows, whole


def _split_of(plan: Plan) -> tuple[Split, ...]:
    """The operators that a plan splits, as one entry: a plan does not tell which are in blocks
    together."""
    blocks = Counter(op.part_of for op in plan.graph.ops if op.part_of)
    return (Split(tuple(blocks), max(blocks.values()), ""),) if blocks else ()


def _undominated(figures: Sequence[tuple[int, ...]]) -> Iterator[int]:
    """The places of those that no other is as good as in everything; of equals, the first."""
    for at, row in enumerate(figures):
        if not any(
            all(a <= b for a, b in zip(other, row, strict=True)) and (other != row or index < at)
            for index, other in enumerate(figures)
            if index != at
        ):
            yield at


def find_choices(
    unsplit: Callable[[PlanOptions], Plan],
    target: Board,
    options: PlanOptions,
    costs: CostModel,
    report: Report,
) -> Choices:
    """Split the plan with the quickest kernels, and where these take more flash, the one without
    them, too. `unsplit` plans the model.
    """
    options = options.unsplit
    whole = replace(options, copy_constants=False)
    if options.optimise is not Optimise.SIZE and not target.is_host:
        whole = replace(whole, optimise=Optimise.SPEED)
    plans = [unsplit(whole)]
    if plans[0].spent.operators:
        plans.append(unsplit(replace(whole, optimise=Optimise.SIZE)))
    searched = replace(whole, split_seconds=whole.search_seconds / len(plans))
    fronts = [(plan, split_front(plan, searched, costs, report)) for plan in plans]
    whole_ways = [
        Way(plan, front, Point(plan.arena.size_bytes, 0, ()))
        for plan, front in fronts
        if front.points[0].schemes
    ]
    ways = [Way(plan, front, point) for plan, front in fronts for point in front.points]
    ways = sorted((*whole_ways, *ways), key=lambda way: bool(way.point.schemes))
    figures = [
        (
            way.point.peak_bytes,
            estimated_need(way.whole).flash_bytes,
            round(way.front.total + way.point.extra),
        )
        for way in ways
    ]
    kept = sorted({0, *_undominated(figures)})
    return Choices(tuple(ways[at] for at in kept), target, options, costs, report)
