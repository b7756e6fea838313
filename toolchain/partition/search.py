"""Which segments of an order to split, into how many blocks, and how: the Pareto front.

Between two steps of an order only the live tensors matter. So a plan is a chain of segments, each
one left as it is or split as one region; its peak is the largest of its segments' and its cost
their sum. For a limit on the peak the cheapest chain is a shortest path over the steps: exact for
this order and these segments, where MOTES's Algorithm 1 searches by beam. Segments are tried
around the steps that lie above the limit in question (the memory bottlenecks) first of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolchain.ir import Graph, MemoryProblem
from toolchain.ir.memory import footprint
from toolchain.partition.blocks import Mode, blocks
from toolchain.partition.estimate import Estimator
from toolchain.partition.front import Front, Point, Task, Watch
from toolchain.partition.region import CannotSplitError, Region, region
from toolchain.partition.scheme import Scheme

_MOST_BLOCKS = 64
_MOST_BLOCKS_OF_ALL = 4000
_APART, _APART_LARGE = 1.1, 1.35
"""Least ratio of two numbers of blocks that are tried; and in a region of over _LARGE operators."""
_LARGE = 12
_SHORT = 8
"""Segments of so many steps are tried wherever they begin."""


@dataclass(frozen=True)
class _Segment:
    """Steps [begin, end) of the order; `scheme` None where they stay as they are."""

    begin: int
    end: int
    peak_bytes: int
    extra: int
    scheme: Scheme | None


def pareto_front(task: Task, watch: Watch) -> Front:
    """The front of all chains of segments of the order. Cut short, it holds what was found."""
    graph, problem, order = task.graph, task.problem, task.order
    ordered = graph.with_ops([graph.ops[i] for i in order])
    scratch = tuple(problem.scratch_bytes[i] for i in order)
    estimator = Estimator(ordered, task.core, task.costs, scratch)
    steps = footprint(problem, order)
    segments = [_Segment(i, i + 1, peak, 0, None) for i, peak in enumerate(steps)]
    with watch:
        for begin, end in _spans(problem, order, steps):
            if watch.over():
                break
            watch.tell(f"steps {begin} to {end} of {len(order)}")
            segments += _split_segments(
                ordered, problem, order, (begin, end), estimator, max(steps)
            )
    total = sum(estimator.unsplit)
    return Front(tuple(_front(segments, len(order))), total, watch.seconds, watch.stopped)


def _spans(
    problem: MemoryProblem, order: Sequence[int], steps: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Candidate segments: between steps where little is live, and all short ones.

    Those over the highest steps come first.
    """
    live = _live_between(problem, order)
    last = len(order)
    cuts = [
        at
        for at in range(last + 1)
        if at in (0, last) or (live[at] <= live[at - 1] and live[at] <= live[at + 1])
    ]
    smallest = min(steps[at] for at in range(last))
    pairs = {(begin, end) for i, begin in enumerate(cuts) for end in cuts[i + 1 :]}
    pairs |= {
        (begin, end)
        for begin in range(last)
        for end in range(begin + 1, min(begin + _SHORT, last) + 1)
    }
    spans = [
        (begin, end)
        for begin, end in pairs
        if max(steps[begin:end]) > smallest and max(live[begin], live[end]) < max(steps)
    ]
    return iter(sorted(spans, key=lambda s: (-max(steps[s[0] : s[1]]), s[1] - s[0], s)))


def _live_between(problem: MemoryProblem, order: Sequence[int]) -> list[int]:
    """Bytes that are live across the border before each step, and at the two ends."""
    live = [0] * (len(order) + 1)
    for buffer, (start, end) in zip(problem.buffers, problem.lifetimes(order), strict=True):
        for at in range(start + 1, end):
            live[at] += buffer.size_bytes
        if buffer.from_start:
            live[0] += buffer.size_bytes
        if buffer.to_end:
            live[len(order)] += buffer.size_bytes
    return live


def _split_segments(
    graph: Graph,
    problem: MemoryProblem,
    order: Sequence[int],
    span: tuple[int, int],
    estimator: Estimator,
    most_bytes: int,
) -> list[_Segment]:
    """The useful ways to split steps [begin, end): each smaller or cheaper than the others.

    Steps that cannot be split with the last one run before it, as they are.
    """
    begin, end = span
    found = _region(graph, begin, end)
    if found is None:
        return []
    inside = set(found.ops)
    first = [step for step in range(begin, end) if step not in inside]
    begun = begin + len(first)
    if first:
        steps = [*range(begin), *first, *found.ops, *range(end, len(order))]
        order = [order[step] for step in steps]
        floor = max(footprint(problem, order)[begin:begun])
    else:
        floor = 0
    outside = _outside_bytes(graph, problem, order, found, begun, end)
    joined = sum(graph.tensors[name].size_bytes for name in found.joined)
    if max(outside + joined, floor) >= most_bytes:
        return []
    before = sum(estimator.unsplit[step] for step in found.ops)
    names = tuple(graph.ops[i].name for i in found.ops)
    seed = (found.joined[-1], found.axis_of(found.joined[-1]))
    result: list[_Segment] = []
    for mode in Mode:
        for count in _counts(found):
            try:
                plan = blocks(found, count, mode)
            except CannotSplitError:
                continue
            if sum(len(c) for c in plan.computed) > _MOST_BLOCKS_OF_ALL:
                break
            guess = estimator.estimate(plan)
            peak, extra = max(outside + guess.bytes_inside, floor), guess.count - before
            if peak < most_bytes:
                scheme = Scheme(names, seed, count, mode)
                result.append(_Segment(begin, end, peak, max(extra, 0), scheme))
    return _undominated(result)


def _undominated(segments: Sequence[_Segment]) -> list[_Segment]:
    kept: list[_Segment] = []
    for segment in sorted(segments, key=lambda s: (s.extra, s.peak_bytes)):
        if not kept or segment.peak_bytes < kept[-1].peak_bytes:
            kept.append(segment)
    return kept


def _region(graph: Graph, begin: int, end: int) -> Region | None:
    """The last step, split along its first axis that is more than 1 long, and all before it that
    can be split with it. What cannot must depend on nothing that can."""
    last = graph.ops[end - 1]
    shape = graph.output(last).shape
    axis = next((i for i, d in enumerate(shape) if d > 1), None)
    if axis is None or len(last.outputs) != 1:
        return None
    chosen = set(range(begin, end))
    while True:
        try:
            return region(graph, chosen, (last.outputs[0], axis))
        except CannotSplitError as error:
            if error.blocker is None or error.blocker not in chosen:
                return None
            chosen -= _with_ancestors(graph, error.blocker, begin)
            if end - 1 not in chosen or len(chosen) < 2:
                return None


def _with_ancestors(graph: Graph, step: int, begin: int) -> set[int]:
    """A step and all from `begin` on that it depends on."""
    found, waiting = {step}, [step]
    while waiting:
        before = {p for p in graph.predecessors[waiting.pop()] if p >= begin} - found
        found |= before
        waiting += before
    return found


def _outside_bytes(
    graph: Graph,
    problem: MemoryProblem,
    order: Sequence[int],
    found: Region,
    begin: int,
    end: int,
) -> int:
    """Buffers that are live while the segment runs but hold nothing that it makes."""
    made = {graph.ops[i].outputs[0] for i in found.ops}
    return sum(
        buffer.size_bytes
        for buffer, (start, stop) in zip(problem.buffers, problem.lifetimes(order), strict=True)
        if start < end and stop > begin and not made.intersection(m.tensor for m in buffer.members)
    )


def _counts(found: Region) -> list[int]:
    """Numbers of blocks to try: those that give new block sizes, ever further apart."""
    size = max(found.graph.tensors[n].shape[found.axis_of(n)] for n in _made(found))
    counts = {-(-size // length) for length in range(1, size)}
    apart = _APART if len(found.ops) <= _LARGE else _APART_LARGE
    kept: list[int] = []
    for count in sorted(counts):
        most = count == size <= 4 * _MOST_BLOCKS
        if most or (count <= _MOST_BLOCKS and (not kept or count >= apart * kept[-1])):
            kept.append(count)
    return kept


def _made(found: Region) -> tuple[str, ...]:
    return tuple(found.op(i).outputs[0] for i in found.ops)


def _front(segments: Sequence[_Segment], steps: int) -> Iterator[Point]:
    """Shortest paths under falling limits on the peak."""
    limit: float = math.inf
    ending: list[list[_Segment]] = [[] for _ in range(steps + 1)]
    for segment in segments:
        ending[segment.end].append(segment)
    best: Point | None = None
    while (point := _cheapest(ending, limit)) is not None:
        if best is not None and point.extra > best.extra:
            yield best
        best = point
        limit = point.peak_bytes
    if best is not None:
        yield best


def _cheapest(ending: Sequence[Sequence[_Segment]], limit: float) -> Point | None:
    """The cheapest chain with every segment's peak below `limit`."""
    costs: list[tuple[int, int]] = [(0, 0)]
    chosen: list[_Segment | None] = [None]
    for at in range(1, len(ending)):
        best: tuple[float, float] = (math.inf, math.inf)
        by: _Segment | None = None
        for segment in ending[at]:
            before = costs[segment.begin]
            if segment.peak_bytes >= limit or before[0] < 0:
                continue
            cost = (before[0] + segment.extra, max(before[1], segment.peak_bytes))
            if cost < best:
                best, by = cost, segment
        costs.append((-1, -1) if by is None else (int(best[0]), int(best[1])))
        chosen.append(by)
    if costs[-1][0] < 0:
        return None
    schemes: list[Scheme] = []
    peak, at = 0, len(ending) - 1
    while at > 0:
        taken = chosen[at]
        assert taken is not None
        peak = max(peak, taken.peak_bytes)
        if taken.scheme is not None:
            schemes.append(taken.scheme)
        at = taken.begin
    return Point(peak, costs[-1][0], tuple(reversed(schemes)))
