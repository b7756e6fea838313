"""Buffers that become live, and die, a few bytes at a time: the live run at each step.

A part of a split network reads its input and writes its output row by row, through views. Rows that
have been read for the last time are free, and so are rows not yet written. The output may therefore
grow over the part of the input that is no longer needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple


@dataclass(frozen=True)
class Access:
    """An operator reads or writes bytes [begin, end) of buffer `buffer`."""

    buffer: int
    begin_bytes: int
    end_bytes: int


class LiveRun(NamedTuple):
    """The live bytes [bottom, top) of a buffer from step `step` on; none where the two are
    equal."""

    step: int
    bottom_bytes: int
    top_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.top_bytes - self.bottom_bytes


NOTHING = LiveRun(0, 0, 0)

Interval = tuple[int, int]
"""An open interval: the values strictly between the two."""

Touch = tuple[int, int, int]
"""A step and the bytes [begin, end) that are read or written then."""


@dataclass(frozen=True)
class Takeover:
    """An operator reads bytes of one buffer for the last time and writes bytes of another one.

    `dying` holds the live run of the first buffer at that step and at the next. `born` holds the
    live run of the second at the step before and at that step. The bytes written may lie over the
    bytes read if offset(dying) - offset(born) is at least `lead_bytes`; with `exact`, only if it is
    equal (`memory.Overlap`). Bytes that are read later, and bytes that were written earlier, must
    not overlap anything live. Example: a depthwise convolution that reads rows 0 to 5 of a window,
    the last two of which its next block reads again, may write over rows 0 to 3.
    """

    dying: tuple[LiveRun, LiveRun]
    born: tuple[LiveRun, LiveRun]
    lead_bytes: int
    exact: bool

    def forbidden(self) -> list[Interval]:
        """Forbidden distances offset(dying) - offset(born) at that step."""
        (read, stays), (was, written) = self.dying, self.born
        intervals = []
        for low, high in _apart(read, written):
            lead = min(max(self.lead_bytes, low), high)
            intervals += [(low, lead), (lead, high)] if self.exact else [(low, lead)]
            others = (*_apart(read, was), *_apart(stays, written))
            intervals += [(max(a, low), min(b, high)) for a, b in others]
        return [(low, high) for low, high in intervals if low < high]

    def shared_bytes(self) -> int:
        """The most bytes that the two can share at that step."""
        (read, _), (_, written) = self.dying, self.born
        forbidden = self.forbidden()
        distances = {end for interval in forbidden for end in interval}
        distances |= {
            written.bottom_bytes - read.bottom_bytes,
            written.top_bytes - read.top_bytes,
        }
        shared = (
            min(written.top_bytes, read.top_bytes + d)
            - max(written.bottom_bytes, read.bottom_bytes + d)
            for d in distances
            if not any(low < d < high for low, high in forbidden)
        )
        return max(0, *shared)


def _apart(a: LiveRun, b: LiveRun) -> list[Interval]:
    """Distances of a from b at which they share bytes."""
    if not (a.size_bytes and b.size_bytes):
        return []
    return [(b.bottom_bytes - a.top_bytes, b.top_bytes - a.bottom_bytes)]


def live_runs(touches: Iterable[Touch]) -> tuple[LiveRun, ...]:
    """The smallest run at each step that holds all bytes live then, from the first access on.

    A byte is live from the first step that accesses it through the last one. The last entry is the
    empty run after the last access.
    """
    parts = _parts(sorted(t for t in touches if t[1] < t[2]))
    steps = sorted({step for _, _, first, last in parts for step in (first, last + 1)})
    return tuple(_swept(parts, steps))


def _parts(touches: Sequence[Touch]) -> list[tuple[int, int, int, int]]:
    """Runs of bytes [begin, end) with the first and last step that touches each, ascending."""
    cuts = sorted({at for _, begin, end in touches for at in (begin, end)})
    index = {at: i for i, at in enumerate(cuts)}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for step, begin, end in touches:
        for i in range(index[begin], index[end]):
            first.setdefault(i, step)
            last[i] = step
    return [(cuts[i], cuts[i + 1], first[i], last[i]) for i in sorted(first)]


def _swept(parts: Sequence[tuple[int, int, int, int]], steps: Sequence[int]) -> Iterator[LiveRun]:
    waiting = sorted(parts, key=lambda part: part[2], reverse=True)
    lowest: list[tuple[int, int]] = []
    highest: list[tuple[int, int]] = []
    before = (-1, -1)
    for step in steps:
        while waiting and waiting[-1][2] <= step:
            begin, end, _, last = waiting.pop()
            heappush(lowest, (begin, last))
            heappush(highest, (-end, last))
        for heap in (lowest, highest):
            while heap and heap[0][1] < step:
                heappop(heap)
        run = (lowest[0][0], -highest[0][0]) if lowest else (before[0], before[0])
        if run != before:
            yield LiveRun(step, *run)
        before = run
