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
from dataclasses import replace
from itertools import pairwise

import numpy as np

from toolchain.partition.front import Front, Point, Task, Watch
from toolchain.partition.program import Mode
from toolchain.partition.segments import Segment, Segments, Span
from toolchain.search import Work

_NS_A_SEGMENT, _NS_A_LIMIT = 110, 8
"""To weigh a known segment for a chain; and for each of many limits at once."""
_NEARLY_FULL = 1e15
"""Cost of a segment that comes near to the limit, where as few as can be shall."""
_MOST_BLOCKS = 128
_APART = 1.1
"""Least ratio of two numbers of blocks that are tried."""
_FALL = 0.98
"""From one limit on the peak to the next."""
_CLEARLY = 0.996
"""From one point of the front to the next, at least."""
_ROOM = 0.06, 0.2
"""Shares of the peak that, in points made for it, as few steps as can be come near to: where little
is free beside the worst steps alone, their tensors are easier to lay out."""
_NEAR = 3
"""Borders so near to a bottleneck are tried however much is live there."""
_LOST = 0.0005
"""Share of all time that a slower kernel must take more, for its operator to be split instead."""
_TRIES = 40
"""Spans around such an operator, at most, before the limit falls below what it needs."""
_FAR = 120
"""No segment begins or ends so many steps from the bottleneck that it is for."""
_NEVER = math.inf, math.inf
"""Cost and peak of a chain that there is not."""


def pareto_front(task: Task, watch: Watch) -> Front:
    """The front of all chains of segments of the order. If cut short, it holds what was found."""
    search = _Search(Segments(task, watch.work))
    with watch:
        search.run(watch)
    return search.found(watch)


class _Search:
    """Segments that are known, and chains of them under falling limits."""

    def __init__(self, all_of: Segments) -> None:
        self.all_of = all_of
        self.steps = len(all_of.step_bytes)
        self.chains = Chains(self.steps, all_of.work)
        self._with_uneven = Chains(self.steps, all_of.work)
        self._tried: set[tuple[int, int]] = set()
        self._uneven: set[tuple[int, int, tuple[str, int], Mode]] = set()
        self._around: dict[int, int] = {}
        self._borders: dict[tuple[int, int], list[int]] = {}
        for segment in all_of.unsplit():
            self._add(segment)

    def _add(self, segment: Segment) -> None:
        self.chains.add(segment)
        self._with_uneven.add(segment)

    def run(self, watch: Watch) -> None:
        """Look for chains under ever lower limits, then for better ones between them; with blocks
        of different heights in the segments of these.
        """
        self._fall(watch)
        self._level(watch)
        while not watch.over() and self._refine(watch):
            pass
        self._level(watch)

    def found(self, watch: Watch) -> Front:
        """The front of the chains that are known."""
        even = self._front_of(self.chains, watch)
        return replace(self._front_of(self._with_uneven, watch), even=even)

    def _front_of(self, chains: Chains, watch: Watch) -> Front:
        roomy = tuple(tuple(_front(chains, share)) for share in _ROOM)
        points, total = tuple(_front(chains)), self.all_of.total
        return Front(points, total, watch.seconds, watch.stopped, roomy)

    def _fall(self, watch: Watch) -> None:
        limit, best = math.inf, ""
        found: list[tuple[int, float]] = []
        while not watch.over():
            chain = self.chains.chain(limit)
            span = next(self._spans(limit, chain), None)
            if span is not None:
                watch.tell(
                    f"steps {span[0]} to {span[1]} of {self.steps}, best {best}", found=tuple(found)
                )
                self._try(*span)
                continue
            if not chain:
                break
            point = point_of(chain)
            limit = min(limit * _FALL, point.peak_bytes)
            found.append((point.peak_bytes, point.extra / max(self.all_of.total, 1)))
            best = f"{point.peak_bytes:,} B at {found[-1][1]:.1%}"

    def _spans(self, limit: float, chain: Sequence[Segment]) -> Iterator[tuple[int, int]]:
        """Untried spans: over the first steps that no chain passes below the limit; where one does,
        a few around each step for which it takes a slower kernel.
        """
        if not chain:
            yield from self._bridges(self.chains.reached(limit), limit)
            return
        slower = [s for s in chain if s.scheme is None and s.extra > _LOST * self.all_of.total]
        for segment in sorted(slower, key=lambda s: (-s.extra, s.begin)):
            around = self._around.setdefault(segment.begin, 0)
            if around < _TRIES:
                self._around[segment.begin] += 1
                yield from self._bridges(segment.begin, limit)

    def _level(self, watch: Watch) -> None:
        """Try blocks of different heights in the split segments of the chains on the front."""
        split = {
            (s.begin, s.end, s.scheme.seed, s.scheme.mode): None
            for segments in self.chains.front()
            for s in segments
            if s.scheme is not None
        }
        new = [key for key in split if key not in self._uneven]
        for done, key in enumerate(new):
            if watch.over():
                break
            watch.tell(f"heights of blocks in {len(new) - done} more segments")
            self._uneven.add(key)
            begin, end, seed, mode = key
            span = self.all_of.span(begin, end, seed)
            assert span is not None, "it was split before"
            for segment in self.all_of.uneven(span, mode):
                self._with_uneven.add(segment)

    def _refine(self, watch: Watch) -> bool:
        """Try spans that differ a little from those of the chains on the front; whether any was
        new."""
        spans: dict[tuple[int, int], None] = {}
        fronts = self.chains.front()
        points = map(point_of, fronts)
        figures = tuple((p.peak_bytes, p.extra / max(self.all_of.total, 1)) for p in points)
        for segments in fronts:
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

    def _bridges(self, step: int, limit: float) -> Iterator[tuple[int, int]]:
        """Untried spans over a step, the shortest first."""
        live = self.all_of.live
        ends = self._lows(step + 1, 1)
        spans = [
            (b, e)
            for b in self._lows(step, -1)
            for e in ends
            if (b, e) not in self._tried and max(live[b], live[e]) < limit
        ]
        yield from sorted(spans, key=lambda s: (s[1] - s[0], s))

    def _lows(self, start: int, step: int) -> list[int]:
        if (start, step) not in self._borders:
            self._borders[start, step] = _lows(self.all_of.live, start, step)
        return self._borders[start, step]

    def _try(self, begin: int, end: int) -> None:
        self._tried.add((begin, end))
        for span in self.all_of.spans(begin, end):
            for mode in self.all_of.modes(span):
                for segment in self.all_of.split(span, _counts(span), mode):
                    self._add(segment)


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


class Chains:
    """Segments by their end, and the shortest paths over them.

    The costs of the last limit are kept: a new segment changes none before its end, and behind it
    none of borders whose segments all begin behind the last change. A path is charged for all
    segments, weighed again or not, so that a search ends where it did without this.
    """

    def __init__(self, steps: int, work: Work) -> None:
        self._work = work
        self._size = 0
        self._ending: list[list[Segment]] = [[] for _ in range(steps + 1)]
        self._spanning: dict[tuple[int, int], list[Segment]] = {}
        self._first = list(range(steps + 1))
        """The first step of all segments that end at each border."""
        self._limit = math.nan
        self._costs: list[tuple[float, float]] = [(0, 0)] + [_NEVER] * steps
        self._chosen: list[Segment | None] = [None] * (steps + 1)
        self._changed: set[int] = set()

    def add(self, segment: Segment) -> None:
        """Keep it unless another one from and to the same steps is as small and as cheap."""
        begin, end, peak_bytes, extra, *_ = segment
        others = self._spanning.setdefault((begin, end), [])
        for other in others:
            if other.peak_bytes <= peak_bytes and other.extra <= extra:
                return
        others.append(segment)
        self._ending[end].append(segment)
        self._first[end] = min(self._first[end], begin)
        self._changed.add(end)
        self._size += 1

    def reached(self, limit: float) -> int:
        """The last border that a chain from the first one reaches below the limit."""
        self._weigh(limit)
        return max(at for at, cost in enumerate(self._costs) if cost < _NEVER)

    def chain(self, limit: float) -> list[Segment]:
        """The cheapest chain with every segment's peak below `limit`; empty where there is none."""
        self._weigh(limit)
        segments: list[Segment] = []
        at = len(self._ending) - 1
        while at > 0:
            taken = self._chosen[at]
            if taken is None:
                return []
            segments.append(taken)
            at = taken.begin
        return segments[::-1]

    def _weigh(self, limit: float) -> None:
        """Cost and peak of the cheapest chain to each border, and its last segment."""
        self._work.spend(_NS_A_SEGMENT * self._size)
        changed = self._changed if limit == self._limit else set(range(1, len(self._ending)))
        costs, last = self._costs, -1
        for at in range(min(changed, default=len(costs)), len(costs)):
            if at not in changed and self._first[at] > last:
                continue
            best, by = self._best(at, limit)
            if best != costs[at]:
                last = at
            costs[at], self._chosen[at] = best, by
        self._limit, self._changed = limit, set()

    def _best(self, at: int, limit: float) -> tuple[tuple[float, float], Segment | None]:
        best, by, costs = _NEVER, None, self._costs
        for segment in self._ending[at]:
            cost, peak = costs[segment.begin]
            if segment.peak_bytes < limit and cost < math.inf:
                other = (cost + segment.extra, max(peak, segment.peak_bytes))
                if other < best:
                    best, by = other, segment
        return best, by

    def front(self, room: float = 0.0) -> list[list[Segment]]:
        """The cheapest chain for each of many limits on the peak, the highest first, `_CLEARLY`
        apart. With `room`, of those that have the fewest segments within that share of the limit,
        each where the limit is near to its own peak.
        """
        every = [s.peak_bytes for ending in self._ending for s in ending]
        if not every:
            return []
        high, low = max(every) + 1, max(min(every), 1)
        count = 1 + math.ceil(math.log(low / high) / math.log(_CLEARLY))
        limits = np.maximum(high * _CLEARLY ** np.arange(count + 1), low + 1)
        self._work.spend((_NS_A_SEGMENT + _NS_A_LIMIT * len(limits)) * self._size)
        costs = np.full((len(self._ending), len(limits)), np.inf)
        costs[0] = 0.0
        chosen = np.full(costs.shape, -1)
        for at, ending in enumerate(self._ending[1:], 1):
            if not ending:
                continue
            peaks = np.asarray([segment.peak_bytes for segment in ending])[:, None]
            extras = np.asarray([segment.extra for segment in ending])[:, None]
            cost = costs[[segment.begin for segment in ending]] + extras
            if room:
                cost += np.where(limits * (1 - room) <= peaks, _NEARLY_FULL, 0.0)
            cost[limits <= peaks] = np.inf
            chosen[at] = cost.argmin(axis=0)
            costs[at] = cost.min(axis=0)
        found: list[list[Segment]] = []
        for column in np.flatnonzero(np.isfinite(costs[-1])).tolist():
            chain: list[Segment] = []
            at = len(self._ending) - 1
            while at > 0:
                chain.append(self._ending[at][chosen[at, column]])
                at = chain[-1].begin
            below = limits[column + 1 : column + 2]
            if room and (max(s.peak_bytes for s in chain) < below).any():
                continue
            if not found or chain[::-1] != found[-1]:
                found.append(chain[::-1])
        return found


def point_of(chain: Sequence[Segment]) -> Point:
    """A chain of segments as a point."""
    schemes = tuple(s.scheme for s in chain if s.scheme is not None)
    titles = tuple(pair for s in chain for pair in s.titles)
    return Point(max(s.peak_bytes for s in chain), sum(s.extra for s in chain), schemes, titles)


def _front(chains: Chains, room: float = 0.0) -> Iterator[Point]:
    """The points of a front of chains, of which none is as small and as cheap as another."""
    points = map(point_of, chains.front(room))
    lowest = math.inf
    for point in sorted(points, key=lambda p: (p.extra, p.peak_bytes)):
        if point.peak_bytes < lowest:
            lowest = point.peak_bytes
            yield point
