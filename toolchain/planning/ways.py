"""Ways to compute a graph: which operators are split, and by which kernels; the plan of each.

The ways depend on the graph, the board and the kernels that options allow, not on how much RAM,
flash or time is asked for: whoever asks chooses from the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from toolchain import partition, schedule
from toolchain.arena import Allocator
from toolchain.boards import Board
from toolchain.cost import CostModel
from toolchain.cost.alternatives import timed_forms
from toolchain.ir import Graph, MemoryProblem, Schedule
from toolchain.ir.memory import footprint, peak_bytes
from toolchain.memory.plan import Plan
from toolchain.memory.problem import memory_problem
from toolchain.ops.check import check
from toolchain.ops.lowering import Kernels, Lowered, lower
from toolchain.partition import splitters
from toolchain.partition.block_costs import BlockKernels
from toolchain.partition.front import Front, Point
from toolchain.partition.scheme import Scheme
from toolchain.partition.walk import Walks
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.ordering import choose_views
from toolchain.planning.placing import place
from toolchain.planning.room import Beside
from toolchain.progress import Report, silent

_PLACING_SECONDS, _PLACING_SECONDS_AN_OPERATOR, _MOST_PLACING_SECONDS = 0.3, 0.01, 1.0
"""Work limit of placing the tensors of one way, what each operator of the unsplit graph adds, and
the most."""
_APART = 0.985
"""Ways of one list are kept whose peaks are so far apart."""
_OTHERS = 4
"""Ways of each list of others, at most."""


@dataclass(frozen=True)
class Ways:
    """`points`: of which the first ones split nothing, the quickest first. `stopped`: as of the
    front.
    """

    points: tuple[Point, ...]
    stopped: str


def search(
    plan: Plan,
    target: Board,
    options: PlanOptions,
    costs: CostModel,
    report: Report = silent,
    most_calls: int = partition.MOST_CALLS,
    walks: Walks | None = None,
) -> Front:
    """Ways to split the operators of an unsplit plan: peak against predicted slowdown.

    `most_calls`: blocks of one region at most. `walks`: of `ordered_walks`, if these are known.
    """
    walks = walks or ordered_walks(plan)
    graph, lowered = walks.kernels.graph, walks.kernels.lowered
    names: dict[str, frozenset[str]] = {}
    if options.optimise is not Optimise.SIZE:
        for op, kernel in zip(graph.ops, lowered.kernels, strict=True):
            names[op.name] = frozenset(form.name for form in timed_forms(kernel, target.core))
    task = partition.Task(
        graph,
        memory_problem(lowered),
        tuple(range(len(graph.ops))),
        target.core,
        costs,
        preference=plan.lowered.preference,
        names=names,
        most_calls=most_calls,
        walks=walks,
    )
    watch = partition.Watch(options.search_seconds(len(graph.ops)), report)
    return splitters.splitter(options.splitter).front(task, watch)


def ordered_walks(plan: Plan, known: Kernels | None = None) -> Walks:
    """The walks of regions of an unsplit plan's operators, in its order. `known`: of its core."""
    graph = partition.single_outputs(plan.graph, plan.schedule.order)
    return Walks(BlockKernels(graph, plan.lowered.core, plan.lowered.preference, known))


def ways(front: Front) -> Ways:
    """The ways of a front that are made into plans."""
    kept = [*_kept(front), *(_kept(front.even) if front.even else ())]
    kept += [replace(point, titles=()) for point in kept if point.schemes]
    one = {(point.schemes, point.titles): point for point in reversed(kept)}
    return Ways(tuple(reversed(one.values())), front.stopped)


def _kept(front: Front) -> Iterator[Point]:
    yield from _apart(front.points)
    for points in front.others:
        split = [point for point in _apart(points) if point.schemes]
        step = max(len(split) / _OTHERS, 1)
        yield from (split[int(at * step)] for at in range(min(_OTHERS, len(split))))


def _apart(points: Sequence[Point]) -> Iterator[Point]:
    """Points whose peak is clearly lower than that of the cheaper ones before; the last, too."""
    last = math.inf
    for point in sorted(points, key=lambda p: (p.extra, p.peak_bytes)):
        if point.peak_bytes <= _APART * last or (point is points[-1] and point.peak_bytes < last):
            last = point.peak_bytes
            yield point


@dataclass(frozen=True)
class Built:
    """A way before its tensors have places: `found` is the order, whose peak no arena is below."""

    lowered: Lowered
    problem: MemoryProblem
    found: Schedule

    @cached_property
    def live_bytes(self) -> tuple[int, ...]:
        """For each operator the bytes that are live while it runs, but for its scratch."""
        live = [0] * len(self.problem.ops)
        order = self.found.order
        for index, size in zip(order, footprint(self.problem, order), strict=True):
            live[index] = size - self.problem.scratch_bytes[index]
        return tuple(live)

    def beside(self, arena_bytes: float) -> Beside:
        """Room for scratch in an arena of so many bytes."""
        room = [arena_bytes - size for size in self.live_bytes]
        return Beside(room, [kernel.title for kernel in self.lowered.kernels])


def finer(whole: Plan, schemes: Sequence[Scheme]) -> Graph:
    """The graph of an unsplit plan, split by these schemes; not checked."""
    if not schemes:
        return whole.graph
    ordered = partition.single_outputs(whole.graph, whole.schedule.order)
    return partition.split_all(ordered, schemes)


def built(whole: Plan, graph: Graph, point: Point, known: Kernels) -> Built:
    """A way to compute the graph of an unsplit plan; `graph`: split by the schemes of the way,
    which is checked here: many ways are left out before their graphs are used.
    """
    lowered = lower(graph, known.core, known.preference, dict(point.titles), known)
    if not point.schemes:
        problem, order = choose_views(lowered), whole.schedule.order
        return Built(
            lowered, problem, replace(whole.schedule, peak_bytes=peak_bytes(problem, order))
        )
    check(graph)
    problem = memory_problem(lowered, progressive=True)
    found = schedule.scheduler("rpo").schedule(problem)
    given = tuple(range(len(graph.ops)))
    peak = peak_bytes(problem, given)
    if peak <= found.peak_bytes:
        method = f"{whole.schedule.method}, split"
        found = replace(found, order=given, method=method, peak_bytes=peak)
    return Built(lowered, problem, found)


def way_plan(
    way: Built, whole: Plan, target: Board, options: PlanOptions, allocator: Allocator
) -> Plan:
    """The plan of a way; `whole` is the unsplit one, `allocator` that of the options."""
    operators = len(whole.graph.ops)
    seconds = _PLACING_SECONDS + _PLACING_SECONDS_AN_OPERATOR * operators
    seconds = min(seconds, _MOST_PLACING_SECONDS, options.time_limit_seconds or math.inf)
    limited = replace(options, time_limit_seconds=seconds)
    plan = place(way.lowered, target, way.problem, way.found, limited, allocator, others=False)
    return replace(plan, boundaries=whole.boundaries)
