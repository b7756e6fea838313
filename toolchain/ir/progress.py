"""Buffers that are born and die progressively: which run of their bytes is live at each step.

A part of a split network reads its input row by row and writes its output row by row, through
views. Rows that have been read for the last time are free, and so are rows not yet written, so the
output may rise over what is left of the input.
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
    """From step `step` on, bytes [bottom, top) of a buffer are live; none where they are equal."""

    step: int
    bottom_bytes: int
    top_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.top_bytes - self.bottom_bytes


Touch = tuple[int, int, int]
"""A step and the bytes [begin, end) that are read or written then."""


def live_runs(touches: Iterable[Touch]) -> tuple[LiveRun, ...]:
    """The smallest run at each step that holds all bytes then live, from the first touch on.

    A byte is live from the first step that touches it through the last one. The last entry is
    the empty run that follows the last touch.
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
