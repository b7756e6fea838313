"""Which segments of an order to split, into how many blocks, and how: the Pareto front.

For a limit on the peak, the cheapest chain of segments is a shortest path over the steps. That is
exact for this order and these segments; MOTES's Algorithm 1 searches by beam search. The limit is
lowered step by step. Where no chain of known segments stays below it, new segments are tried around
the steps that exceed it (the memory bottlenecks), the shortest first, between borders where little
is live.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from toolchain.partition.front import Front, Point, Task, Watch
from toolchain.partition.segments import Segment, Segments, Span
from toolchain.search import Work

_NS_A_SEGMENT = 110
"""To weigh a known segment for a chain."""
_MOST_BLOCKS = 128
_APART = 1.1
"""Least ratio of two numbers of blocks that are tried."""
_FALL = 0.98
"""From one limit on the peak to the next."""
_CLEARLY = 0.998
"""From one point of the front to the next, at least."""
_ROOM = 0.06, 0.12, 0.2
"""Shares of the peak that, in points made for it, as few steps as can be come near to: where little
is free beside the worst steps alone, their tensors are easier to lay out."""
_NEAR = 3
"""Borders so near to a bottleneck are tried however much is live there."""
_FAR = 120
"""No segment begins or ends so many steps from the bottleneck that it is for."""


def pareto_front(task: Task, watch: Watch) -> Front:
    """The front of all chains of segments of the order. If cut short, it holds what was found."""
    search = _Search(Segments(task, watch.work))
    with watch:
        search.run(watch)
    chains = search.chains
    roomy = tuple(tuple(_front(chains, share)) for share in _ROOM)
    points, total = tuple(_front(chains)), search.all_of.total
    unsplit = Point(max(search.all_of.step_bytes), 0, ())
    if points and points[0].peak_bytes >= unsplit.peak_bytes:  # a split there saves nothing
        points = (unsplit, *points[1:])
    return Front(points, total, watch.seconds, watch.stopped, roomy)


class _Search:
    """Segments that are known, and chains of them under falling limits."""

    def __init__(self, all_of: Segments) -> None:
        self.all_of = all_of
        self.steps = len(all_of.step_bytes)
        self.chains = _Chains(self.steps, all_of.work)
        self._tried: set[tuple[int, int]] = set()
        for segment in all_of.unsplit():
            self.chains.add(segment)

    def run(self, watch: Watch) -> None:
        """Look for chains under ever lower limits, then for better ones between them."""
        self._fall(watch)
        while not watch.over() and self._refine(watch):
            pass

    def _fall(self, watch: Watch) -> None:
        limit: float = max(self.all_of.step_bytes)
        best = ""
        figures: list[tuple[int, float]] = []
        while not watch.over():
            chain = self.chains.cheapest(limit)
            if chain is not None:
                limit = min(limit * _FALL, chain.peak_bytes)
                figures.append((chain.peak_bytes, chain.extra / max(self.all_of.total, 1)))
                best = f"{chain.peak_bytes:,} B at {figures[-1][1]:.1%}"
                continue
            span = next(self._bridges(limit), None)
            if span is None:
                break
            watch.tell(
                f"steps {span[0]} to {span[1]} of {self.steps}, best {best}", found=tuple(figures)
            )
            self._try(*span)

    def _refine(self, watch: Watch) -> bool:
        """Try spans that differ a little from those of the chains on the front; whether any was
        new."""
        spans: dict[tuple[int, int], None] = {}
        front = tuple(_front(self.chains))
        figures = tuple((p.peak_bytes, p.extra / max(self.all_of.total, 1)) for p in front)
        for point in front:
            segments = self.chains.chain(point.peak_bytes + 1)
            split = [s for s in segments if s.scheme is not None]
            ends = [(s.begin, s.end) for s in split]
            ends += [(a.begin, b.end) for a, b in pairwise(split) if b.end - a.begin <= _FAR]
            for begin, end in ends:
                for b in range(max(begin - _NEAR, 0), begin + _NEAR + 1):
                    for e in range(max(end - _NEAR, b + 1), min(end + _NEAR, self.steps) + 1):
                        if (b, e) not in self._tried:
                            spans[b, e] = None
        for done, span in enumerate(spans):
            if watch.over():
                break
            watch.tell(f"{len(spans) - done} more segments", found=figures)
            self._try(*span)
        return bool(spans)

    def _bridges(self, limit: float) -> Iterator[tuple[int, int]]:
        """Untried spans over the first steps that no chain passes below the limit."""
        reached = self.chains.reached(limit)
        gap = max(reached)
        live = self.all_of.live
        begins = [b for b in _lows(live, gap, -1) if b in reached]
        ends = _lows(live, gap + 1, 1)
        spans = [
            (b, e)
            for b in begins
            for e in ends
            if (b, e) not in self._tried and max(live[b], live[e]) < limit
        ]
        yield from sorted(spans, key=lambda s: (s[1] - s[0], s))

    def _try(self, begin: int, end: int) -> None:
        self._tried.add((begin, end))
        for span in self.all_of.spans(begin, end):
            for mode in self.all_of.modes(span):
                for segment in self.all_of.split(span, _counts(span), mode):
                    self.chains.add(segment)


def _lows(live: Sequence[int], start: int, step: int) -> list[int]:
    """Borders from `start` outwards: the nearest, and those where less is live than at all nearer
    ones."""
    borders: list[int] = []
    lowest = math.inf
    at = start
    while 0 <= at < len(live) and abs(at - start) <= _FAR:
        if abs(at - start) < _NEAR or live[at] < lowest:
            borders.append(at)
        lowest = min(lowest, live[at])
        at += step
    return borders


def _counts(span: Span) -> list[int]:
    """Numbers of blocks to try: those that give new block sizes, ever further apart."""
    size = span.size
    counts = {-(-size // length) for length in range(1, size)}
    kept: list[int] = []
    for count in sorted(counts):
        most = count == size <= 4 * _MOST_BLOCKS
        if most or (count <= _MOST_BLOCKS and (not kept or count >= _APART * kept[-1])):
            kept.append(count)
    return kept


class _Chains:
    """Segments by their end, and the shortest paths over them."""

    def __init__(self, steps: int, work: Work) -> None:
        self._work = work
        self._size = 0
        self._ending: list[list[Segment]] = [[] for _ in range(steps + 1)]

    def add(self, segment: Segment) -> None:
        """Keep it unless another one from and to the same steps is as small and as cheap."""
        others = self._ending[segment.end]
        for other in others:
            if (
                other.begin == segment.begin
                and other.peak_bytes <= segment.peak_bytes
                and other.extra <= segment.extra
            ):
                return
        others.append(segment)
        self._size += 1

    @property
    def lowest(self) -> int:
        """The lowest peak of a chain."""
        peaks: list[float] = [0]
        for ending in self._ending[1:]:
            through = (max(peaks[s.begin], s.peak_bytes) for s in ending)
            peaks.append(min(through, default=math.inf))
        return int(peaks[-1])

    def reached(self, limit: float) -> set[int]:
        """The borders that a chain from the first one reaches below the limit."""
        self._work.spend(_NS_A_SEGMENT * self._size)
        borders = {0}
        for at in range(1, len(self._ending)):
            if any(s.begin in borders and s.peak_bytes < limit for s in self._ending[at]):
                borders.add(at)
        return borders

    def chain(self, limit: float, room: float = 0.0) -> list[Segment]:
        """The cheapest chain with every segment's peak below `limit`, of those that have the fewest
        segments within that share of it; empty where there is none."""
        self._work.spend(_NS_A_SEGMENT * self._size)
        near = limit * (1 - room) if room else math.inf
        costs: list[tuple[float, float, float]] = [(0, 0, 0)]
        chosen: list[Segment | None] = [None]
        for ending in self._ending[1:]:
            best = (math.inf, math.inf, math.inf)
            by: Segment | None = None
            for segment in ending:
                before = costs[segment.begin]
                if segment.peak_bytes < limit and before[0] < math.inf:
                    cost = (
                        before[0] + (segment.peak_bytes > near),
                        before[1] + segment.extra,
                        max(before[2], segment.peak_bytes),
                    )
                    if cost < best:
                        best, by = cost, segment
            costs.append(best)
            chosen.append(by)
        segments: list[Segment] = []
        at = len(self._ending) - 1
        while at > 0:
            taken = chosen[at]
            if taken is None:
                return []
            segments.append(taken)
            at = taken.begin
        return segments[::-1]

    def cheapest(self, limit: float, room: float = 0.0) -> Point | None:
        """`chain` as a point; None where there is none."""
        segments = self.chain(limit, room)
        if not segments:
            return None
        peak, extra = max(s.peak_bytes for s in segments), sum(s.extra for s in segments)
        return Point(peak, extra, tuple(s.scheme for s in segments if s.scheme is not None))


def _front(chains: _Chains, room: float = 0.0) -> Iterator[Point]:
    """Shortest paths under falling limits on the peak, each clearly lower than the last one, down
    to the lowest peak of all."""
    best: Point | None = None
    limit, lowest = math.inf, chains.lowest
    while (point := chains.cheapest(limit, room)) is not None:
        if best is not None and (point.extra > best.extra or room):
            yield best
        best = point
        limit = min(max(point.peak_bytes * _CLEARLY, lowest + 1), point.peak_bytes)
    if best is not None:
        yield best
