"""Which segments of an order to split, into how many blocks, and how: the Pareto front.

For a limit on the peak the cheapest chain of segments is a shortest path over the steps: exact for
this order and these segments, where MOTES's Algorithm 1 searches by beam. Segments are tried
around the steps that lie above the limit in question (the memory bottlenecks) first of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from toolchain.partition.blocks import Mode
from toolchain.partition.front import Front, Point, Task, Watch
from toolchain.partition.scheme import Scheme
from toolchain.partition.segments import Segment, Segments, Span

_MOST_BLOCKS = 64
_APART, _APART_LARGE = 1.1, 1.35
"""Least ratio of two numbers of blocks that are tried; and in a region of over _LARGE operators."""
_LARGE = 12
_SHORT = 8
"""Segments of so many steps are tried wherever they begin."""


def pareto_front(task: Task, watch: Watch) -> Front:
    """The front of all chains of segments of the order. Cut short, it holds what was found."""
    all_of = Segments(task)
    segments = all_of.unsplit()
    with watch:
        for begin, end in _spans(all_of):
            if watch.over():
                break
            watch.tell(f"steps {begin} to {end} of {len(task.order)}")
            segments += _split_segments(all_of, begin, end)
    points = tuple(_front(segments, len(task.order)))
    return Front(points, all_of.total, watch.seconds, watch.stopped)


def _spans(all_of: Segments) -> Iterator[tuple[int, int]]:
    """Candidate segments: between steps where little is live, and all short ones.

    Those over the highest steps come first.
    """
    live, steps = all_of.live, all_of.step_bytes
    last = len(steps)
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


def _split_segments(all_of: Segments, begin: int, end: int) -> list[Segment]:
    """The useful ways to split steps [begin, end): each smaller or cheaper than the others."""
    most_bytes = max(all_of.step_bytes)
    span = all_of.span(begin, end)
    if span is None or span.least_bytes >= most_bytes:
        return []
    tried = (all_of.split(span, count, mode) for mode in Mode for count in _counts(span))
    return _undominated([made for made in tried if made and made.peak_bytes < most_bytes])


def _undominated(segments: Sequence[Segment]) -> list[Segment]:
    kept: list[Segment] = []
    for segment in sorted(segments, key=lambda s: (s.extra, s.peak_bytes)):
        if not kept or segment.peak_bytes < kept[-1].peak_bytes:
            kept.append(segment)
    return kept


def _counts(span: Span) -> list[int]:
    """Numbers of blocks to try: those that give new block sizes, ever further apart."""
    size = span.size
    counts = {-(-size // length) for length in range(1, size)}
    apart = _APART if len(span.region.ops) <= _LARGE else _APART_LARGE
    kept: list[int] = []
    for count in sorted(counts):
        most = count == size <= 4 * _MOST_BLOCKS
        if most or (count <= _MOST_BLOCKS and (not kept or count >= apart * kept[-1])):
            kept.append(count)
    return kept


def _front(segments: Sequence[Segment], steps: int) -> Iterator[Point]:
    """Shortest paths under falling limits on the peak."""
    limit: float = math.inf
    ending: list[list[Segment]] = [[] for _ in range(steps + 1)]
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


def _cheapest(ending: Sequence[Sequence[Segment]], limit: float) -> Point | None:
    """The cheapest chain with every segment's peak below `limit`."""
    costs: list[tuple[int, int]] = [(0, 0)]
    chosen: list[Segment | None] = [None]
    for at in range(1, len(ending)):
        best: tuple[float, float] = (math.inf, math.inf)
        by: Segment | None = None
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
