"""Which segments of an order to split, into how many blocks, and how: the Pareto front.

For a limit on the peak the cheapest chain of segments is a shortest path over the steps: exact for
this order and these segments, where MOTES's Algorithm 1 searches by beam. The limit falls; where no
chain of the segments known so far stays below it, segments are tried around the steps that stand in
the way (the memory bottlenecks), the shortest first, between borders where little is live.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from toolchain.partition.blocks import Mode
from toolchain.partition.front import Front, Point, Task, Watch
from toolchain.partition.scheme import Scheme
from toolchain.partition.segments import Segment, Segments, Span

_MOST_BLOCKS = 64
_APART = 1.1
"""Least ratio of two numbers of blocks that are tried."""
_FALL = 0.98
"""From one limit on the peak to the next."""
_NEAR = 3
"""Borders so near to a bottleneck are tried however much is live there."""
_FAR = 120
"""No segment begins or ends so many steps from the bottleneck that it is for."""


def pareto_front(task: Task, watch: Watch) -> Front:
    """The front of all chains of segments of the order. Cut short, it holds what was found."""
    search = _Search(Segments(task))
    with watch:
        search.run(watch)
    points = tuple(_front(search.chains))
    return Front(points, search.all_of.total, watch.seconds, watch.stopped)


class _Search:
    """Segments that are known, and chains of them under falling limits."""

    def __init__(self, all_of: Segments) -> None:
        self.all_of = all_of
        self.steps = len(all_of.step_bytes)
        self.chains = _Chains(self.steps)
        self._tried: set[tuple[int, int]] = set()
        for segment in all_of.unsplit():
            self.chains.add(segment)

    def run(self, watch: Watch) -> None:
        limit: float = max(self.all_of.step_bytes)
        best = ""
        while not watch.over():
            chain = self.chains.cheapest(limit)
            if chain is not None:
                limit = min(limit * _FALL, chain.peak_bytes)
                best = f"{chain.peak_bytes:,} B at {chain.extra / self.all_of.total:.1%}"
                continue
            span = next(self._bridges(limit), None)
            if span is None:
                break
            watch.tell(f"steps {span[0]} to {span[1]} of {self.steps}, best {best}")
            self._try(*span)

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
        span = self.all_of.span(begin, end)
        if span is None:
            return
        for mode in Mode:
            for segment in self.all_of.split(span, _counts(span), mode):
                self.chains.add(segment)


def _lows(live: Sequence[int], start: int, step: int) -> list[int]:
    """Borders from `start` outwards: the nearest, and those where less is live than at all nearer
    ones."""
    found: list[int] = []
    lowest = math.inf
    at = start
    while 0 <= at < len(live) and abs(at - start) <= _FAR:
        if abs(at - start) < _NEAR or live[at] < lowest:
            found.append(at)
        lowest = min(lowest, live[at])
        at += step
    return found


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

    def __init__(self, steps: int) -> None:
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

    def reached(self, limit: float) -> set[int]:
        """The borders that a chain from the first one reaches below the limit."""
        found = {0}
        for at in range(1, len(self._ending)):
            if any(s.begin in found and s.peak_bytes < limit for s in self._ending[at]):
                found.add(at)
        return found

    def cheapest(self, limit: float) -> Point | None:
        """The cheapest chain with every segment's peak below `limit`."""
        costs: list[tuple[int, int]] = [(0, 0)]
        chosen: list[Segment | None] = [None]
        for at in range(1, len(self._ending)):
            best: tuple[float, float] = (math.inf, math.inf)
            by: Segment | None = None
            for segment in self._ending[at]:
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
        peak, at = 0, len(self._ending) - 1
        while at > 0:
            taken = chosen[at]
            assert taken is not None
            peak = max(peak, taken.peak_bytes)
            if taken.scheme is not None:
                schemes.append(taken.scheme)
            at = taken.begin
        return Point(peak, costs[-1][0], tuple(reversed(schemes)))


def _front(chains: _Chains) -> Iterator[Point]:
    """Shortest paths under falling limits on the peak."""
    limit: float = math.inf
    best: Point | None = None
    while (point := chains.cheapest(limit)) is not None:
        if best is not None and point.extra > best.extra:
            yield best
        best = point
        limit = point.peak_bytes
    if best is not None:
        yield best
