"""Segments of an order, each left as it is or split as one region.

Between two steps of an order only the live tensors matter: a plan is a chain of segments, its peak
is the largest of theirs, its cost their sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np

from toolchain.ir import DType, Graph
from toolchain.ir.memory import footprint
from toolchain.memory.problem import memory_problem
from toolchain.ops import spec_of
from toolchain.ops.spec import Axis
from toolchain.partition.estimate import Estimator
from toolchain.partition.front import Task, walks_of
from toolchain.partition.heights import shifted, uneven
from toolchain.partition.program import BlockProgram, Heights, Mode
from toolchain.partition.region import CannotSplitError, Region, axes_of, region
from toolchain.partition.scheme import Scheme
from toolchain.search import Work

_NS_A_STEP, _NS_A_BUFFER = 8000, 1600
"""To find out how a step can be split, and what of a buffer is live beside it."""
_NS_A_PLACE = 400
"""To weigh a block that may begin at a place, for one limit on the bytes."""
_NS_A_SHAPE, _NS_A_RUN, _NS_AN_OPERATOR, _NS_A_BLOCK = 110_000, 220_000, 150_000, 300
"""To estimate a block of a shape that is new, and blocks in numbers that are; for each operator of
a region, and each of its blocks. Measured over 2,641 regions: nine in ten are predicted within 36%
of the processor's time, their sum within 4%."""


class Segment(NamedTuple):
    """Steps [begin, end) of the order; `scheme` is None where they stay unsplit.

    `extra`: cost beyond that of these steps, unsplit, by their quickest kernels. `titles`: of the
    kernels of operators, by name, that are not the first ones.
    """

    begin: int
    end: int
    peak_bytes: int
    extra: int
    scheme: Scheme | None = None
    titles: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Span:
    """Steps [begin, end) that can be split as `region`, after those of them that cannot be split.

    `outside_bytes`: bytes of buffers that are live meanwhile and hold nothing that the span makes.
    `dying`: tensors among them that the span is the last to read, and reads index by index.
    `floor_bytes`: the peak of the steps that run before the region. `cost`: of the region, unsplit,
    by the quickest kernels. `before`: what the first kernels of the steps before it take longer.
    """

    begin: int
    end: int
    region: Region
    outside_bytes: int
    dying: frozenset[str]
    floor_bytes: int
    cost: int
    before: int

    @property
    def least_bytes(self) -> int:
        """A lower bound on the peak for every number of blocks."""
        tensors = self.region.graph.tensors
        joined = sum(tensors[name].size_bytes for name in self.region.joined)
        dying = sum(tensors[name].size_bytes for name in self.dying)
        sums = sum(self.region.sums_bytes(name) for name in self.region.reduced)
        inside = max(sums, joined + sums - dying)
        return max(self.outside_bytes + inside, self.floor_bytes)

    @property
    def size(self) -> int:
        """The most indices that the blocks of one of its operators divide among them."""
        return max(self.region.length(op) for op in self.region.ops)


class Segments:
    """The order of a task, and the results of splitting segments of it.

    `graph`: the task's, its operators in that order. `step_bytes`: peak of each step. `live`: bytes
    that are live across the border before each step, and at the two ends. `work`: the budget to
    which searching is charged.
    """

    def __init__(self, task: Task, work: Work) -> None:
        self.work = work
        self._problem = task.problem
        self._order = tuple(task.order)
        self._lifetimes = np.asarray(task.problem.lifetimes(task.order)).reshape(-1, 2)
        self._held = [frozenset(m.tensor for m in b.members) for b in task.problem.buffers]
        walks = task.walks or walks_of(task)
        self.graph: Graph = walks.kernels.graph
        self.step_bytes = footprint(task.problem, task.order)
        self._estimator = Estimator(walks, task.costs, task.names)
        self._most_calls = task.most_calls
        self._axes: dict[int, Mapping[int, Axis]] = {}
        self.live = self._live_between()

    @cached_property
    def total(self) -> int:
        """The cost of the unsplit graph by its quickest kernels."""
        return sum(self._estimator.costs.least)

    @property
    def first(self) -> int:
        """The cost of the unsplit graph by its first kernels."""
        return sum(each[0].count for each in self._estimator.costs.unsplit)

    def unsplit(self) -> Iterator[Segment]:
        """Each step as a segment, by each kernel that may compute it."""
        costs = self._estimator.costs
        kernels = [[one.kernel for one in each] for each in costs.unsplit]
        for rank in range(max(map(len, kernels), default=0)):
            taken = tuple(each[min(rank, len(each) - 1)] for each in kernels)
            lowered = replace(costs.lowered, kernels=taken)
            peaks = (
                footprint(memory_problem(lowered), range(len(taken))) if rank else self.step_bytes
            )
            for step, each in enumerate(costs.unsplit):
                if rank < len(each):
                    titles = ((self.graph.ops[step].name, each[rank].title),) if rank else ()
                    extra = each[rank].count - costs.least[step]
                    yield Segment(step, step + 1, peaks[step], extra, None, titles)

    def _axes_of(self, step: int) -> Mapping[int, Axis]:
        if step not in self._axes:
            self._axes[step] = axes_of(self.graph.ops[step], self.graph)
        return self._axes[step]

    def _live_between(self) -> tuple[int, ...]:
        live = [0] * (len(self._order) + 1)
        for buffer, (start, end) in zip(
            self._problem.buffers, self._lifetimes.tolist(), strict=True
        ):
            for at in range(start + 1, end):
                live[at] += buffer.size_bytes
            if buffer.from_start:
                live[0] += buffer.size_bytes
            if buffer.to_end:
                live[-1] += buffer.size_bytes
        return tuple(live)

    def rows(self, end: int) -> list[tuple[str, int]]:
        """The output of the step before `end`, with its first axis that is longer than 1; at most
        one.
        """
        outputs = self.graph.ops[end - 1].outputs
        shape = self.graph.tensors[outputs[0]].shape if len(outputs) == 1 else ()
        return [(outputs[0], axis) for axis, size in enumerate(shape) if size > 1][:1]

    def spans(self, begin: int, end: int) -> list[Span]:
        """Ways to split steps [begin, end) as one region.

        By the output of the last step: along its first axis that is longer than 1, and along the
        axes that it sums over.
        """
        last = self.graph.ops[end - 1]
        if len(last.outputs) != 1:
            return []
        y = self.graph.output(last)
        seeds = self.rows(end)
        sums_bytes = DType.INT32.size_bytes * y.elements
        for reduction in spec_of(last.kind).reductions(last, self.graph):
            for name, reach in zip(last.inputs, reduction.reaches, strict=False):
                x = self.graph.tensors.get(name)
                if x and reach and not x.is_constant and sums_bytes < x.size_bytes:
                    seeds.append((name, reach.axis))
                    break
        tried = (self.span(begin, end, seed) for seed in dict.fromkeys(seeds))
        return [span for span in tried if span is not None]

    def span(self, begin: int, end: int, seed: tuple[str, int]) -> Span | None:
        """Steps [begin, end) split along an axis of a tensor; None if they cannot be."""
        self.work.spend(_NS_A_STEP * (end - begin))
        region = self._region(begin, end, seed)
        if region is None:
            return None
        self.work.spend(_NS_A_BUFFER * len(self._problem.buffers))
        inside, order = set(region.ops), self._order
        first = [step for step in range(begin, end) if step not in inside]
        begun = begin + len(first)
        floor = 0
        if first:
            steps = [*range(begin), *first, *region.ops, *range(end, len(order))]
            order = tuple(order[step] for step in steps)
            self.work.spend(2 * _NS_A_BUFFER * (len(order) + len(self._problem.buffers)))
            floor = max(footprint(self._problem, order)[begin:begun])
        made = {self.graph.ops[i].outputs[0] for i in region.ops}
        outside, dying = 0, set()
        lifetimes = self._lifetimes
        if first:
            lifetimes = np.asarray(self._problem.lifetimes(order)).reshape(-1, 2)
        meanwhile = (lifetimes[:, 0] < end) & (lifetimes[:, 1] > begun)
        for number in np.flatnonzero(meanwhile).tolist():
            buffer, held = self._problem.buffers[number], self._held[number]
            if made & held:
                continue
            outside += buffer.size_bytes
            if lifetimes[number, 1] <= end and not buffer.to_end:
                dying |= {name for name in held if self._fades(region, name, buffer.size_bytes)}
        costs = self._estimator.costs
        cost = sum(costs.least[step] for step in region.ops)
        before = sum(costs.unsplit[step][0].count - costs.least[step] for step in first)
        return Span(begin, end, region, outside, frozenset(dying), floor, cost, before)

    def _fades(self, region: Region, name: str, size_bytes: int) -> bool:
        """Whether it is read index by index, each a run of bytes, and fills its buffer."""
        tensor = self.graph.tensors[name]
        return (
            name in region.sliced
            and math.prod(tensor.shape[: region.sliced[name]]) == 1
            and tensor.size_bytes == size_bytes
        )

    def modes(self, span: Span) -> list[Mode]:
        """The modes to try: NARROW where RAM is scarce enough for an input to arrive by rows."""
        modes_to_try = [Mode.SLIDING, Mode.TILES]
        if max(self._grains(span.region)) > 1:
            modes_to_try += [Mode.LINES, Mode.LEADING]
        if self.graph.pushed is not None and BlockProgram(span.region, [1], Mode.NARROW).remade:
            modes_to_try.append(Mode.NARROW)
        return modes_to_try

    def _grains(self, region: Region) -> tuple[int, ...]:
        """Rows that the kernels of its operators compute at a time at most."""
        unsplit = self._estimator.costs.unsplit
        return tuple(
            max(one.kernel.rows for one in unsplit[op]) if op in region.axes else 1
            for op in region.ops
        )

    def uneven(self, span: Span, mode: Mode) -> list[Segment]:
        """The span split into blocks of different heights, each as tall as a limit on the bytes
        allows where it lies (`partition.heights`), for several limits.
        """
        tried, region = shifted(span.size), span.region
        self.work.spend(len(region.ops) * sum(map(len, tried)) * _NS_A_BLOCK)
        counts, grains = [len(heights) for heights in tried], self._grains_by(region, mode)
        program = BlockProgram(region, counts, mode, grains=grains, heights=tried)
        found = uneven(program, span.size, span.dying)
        self.work.spend(len(found) * sum(counts) * _NS_A_PLACE)
        return self.split(span, [len(heights) for heights in found], mode, found)

    def _grains_by(self, region: Region, mode: Mode) -> tuple[int, ...]:
        return self._grains(region) if mode in (Mode.LINES, Mode.LEADING) else ()

    def split(
        self, span: Span, counts: Sequence[int], mode: Mode, heights: Sequence[Heights] = ()
    ) -> list[Segment]:
        """The span split into each number of blocks, without those that are impossible or have too
        many calls. `heights`: of the blocks, for each number; without it they are even.
        """
        if not counts:
            return []
        region = span.region
        names = tuple(self.graph.ops[i].name for i in region.ops)
        estimator = self._estimator
        shapes, runs = estimator.costs.known, len(estimator.runs)
        grains = self._grains_by(region, mode)
        guesses = estimator.estimates(region, counts, mode, span.dying, grains, heights)
        self.work.spend(
            (estimator.costs.known - shapes) * _NS_A_SHAPE
            + (len(estimator.runs) - runs) * _NS_A_RUN
            + len(region.ops) * (_NS_AN_OPERATOR + sum(counts) * _NS_A_BLOCK)
        )
        schemes = [
            Scheme(names, region.seed, count, mode, grains=grains, heights=each)
            for count, each in zip(counts, heights or repeat(()), strict=False)
        ]
        return [
            Segment(
                span.begin,
                span.end,
                max(span.outside_bytes + guess.bytes_inside, span.floor_bytes),
                guess.cost - span.cost + span.before,
                scheme,
                tuple([pair for pair in zip(names, guess.titles, strict=True) if pair[1]]),
            )
            for scheme, found in zip(schemes, guesses, strict=True)
            for guess in found
            if guess.blocks <= self._most_calls
        ]

    def _region(self, begin: int, end: int, seed: tuple[str, int]) -> Region | None:
        """The region of the last step and all steps before it that can be split with it. The others
        must not depend on it."""
        graph = self.graph
        chosen = set(range(begin, end))
        while True:
            try:
                return region(graph, chosen, seed, self._axes_of)
            except CannotSplitError as error:
                if error.blocker is None or error.blocker not in chosen:
                    return None
                chosen -= _with_ancestors(graph, error.blocker, begin)
                if end - 1 not in chosen or len(chosen) < 2:
                    return None


def _with_ancestors(graph: Graph, step: int, begin: int) -> set[int]:
    """A step and all from `begin` on that it depends on."""
    steps, waiting = {step}, [step]
    while waiting:
        before = {p for p in graph.predecessors[waiting.pop()] if p >= begin} - steps
        steps |= before
        waiting += before
    return steps
