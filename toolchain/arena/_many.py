"""Placement without comparing pairs of blocks, for very many of them.

It does in advance what a heap does at run time. It plays births and deaths in the order of their
steps, puts each block into the smallest gap that holds it, and merges adjacent gaps. The work is
nearly linear in the number of blocks; all other methods here are linear in the number of pairs that
are live together. For plain blocks only.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import ArenaProblem
from toolchain.search import Work

_SECONDS_A_PAIR, _SECONDS_A_BLOCK = 5e-6, 5e-5
_SOON_SECONDS = 0.1
"""Whatever the limit, so long is no hindrance."""
_MOST_PAIRS = 3_000_000
"""Each takes half a kilobyte."""
_TRIED = 16
"""Gaps that are large enough but for the alignment, before a block goes on top of all."""
_NS_A_BLOCK, _NS_A_GAP = 5000, 1
"""Nanoseconds that a heap takes for a block, and for each gap that an insertion into its list
moves."""
_SAFE = 1 << 62
Order = NDArray[np.intp]


def plain(problem: ArenaProblem) -> bool:
    """Whether each block needs all its bytes throughout and shares none."""
    return not problem.shared and not any(block.profile for block in problem.blocks)


def too_many(problem: ArenaProblem, seconds: float) -> bool:
    """Whether comparing blocks pair by pair would take more than half of the work limit."""
    pairs = _pairs(problem)
    needed = pairs * _SECONDS_A_PAIR + len(problem.blocks) * _SECONDS_A_BLOCK
    return pairs > _MOST_PAIRS or needed > max(seconds / 2, _SOON_SECONDS)


def _pairs(problem: ArenaProblem) -> int:
    """How many pairs of blocks live together."""
    live = [block for block in problem.blocks if block.start < block.end]
    starts = np.sort(np.fromiter((b.start for b in live), np.int64, len(live)))
    ends = np.sort(np.fromiter((b.end for b in live), np.int64, len(live)))
    born_before = np.arange(len(live))
    return int((born_before - np.searchsorted(ends, starts, "right")).sum())


def load_bound(problem: ArenaProblem) -> int:
    """The largest load of a step: as `_bounds.load_bound_bytes`, without its refinement for the
    last granule.
    """
    live = [b for b in problem.blocks if b.start < b.end and b.size_bytes]
    if not live:
        return 0
    units = np.fromiter((b.alignment_bytes for b in live), np.int64, len(live))
    unit = int(np.gcd.reduce(units))
    safe = sum(b.size_bytes for b in live) < _SAFE
    sizes = np.array([b.size_bytes for b in live], np.int64 if safe else object)
    granules = -(-sizes // unit)
    starts = np.fromiter((b.start for b in live), np.int64, len(live))
    ends = np.fromiter((b.end for b in live), np.int64, len(live))
    steps = np.concatenate([ends, starts])  # at one step what dies goes before what is born
    changes = np.concatenate([-granules, granules])
    loads = np.cumsum(changes[np.argsort(steps, kind="stable")])
    least_end = int(((sizes - 1) % unit + 1).min())
    return (int(loads.max()) - 1) * unit + least_end


def orders(problem: ArenaProblem) -> Iterator[Order]:
    """Blocks by birth. Blocks born together: the largest first, then the longest, then as given."""
    blocks = problem.blocks
    starts = np.fromiter((b.start for b in blocks), np.int64, len(blocks))
    sizes = np.fromiter((b.size_bytes for b in blocks), np.int64, len(blocks))
    ends = np.fromiter((b.end for b in blocks), np.int64, len(blocks))
    yield np.lexsort((-sizes, starts))
    yield np.lexsort((-sizes, -ends, starts))
    yield np.argsort(starts, kind="stable")


def stacked(problem: ArenaProblem, indices: Sequence[int], bottom: int, offsets: list[int]) -> None:
    """Put these blocks on top of one another, from `bottom` on."""
    for index in indices:
        block = problem.blocks[index]
        if block.start < block.end:
            unit = block.alignment_bytes
            offsets[index] = -(-bottom // unit) * unit
            bottom = offsets[index] + block.size_bytes


def compare(problem: ArenaProblem, work: Work) -> None:
    """Charge the work of comparing blocks pair by pair."""
    work.spend_seconds(_pairs(problem) * _SECONDS_A_PAIR + len(problem.blocks) * _SECONDS_A_BLOCK)


def heap_offsets(problem: ArenaProblem, order: Order, work: Work) -> tuple[int, ...]:
    """Offsets of all blocks. If the work limit is reached, the rest is stacked on top."""
    blocks = problem.blocks
    offsets = [0] * len(blocks)
    ends = np.fromiter((b.end for b in blocks), np.int64, len(blocks))
    dying = np.argsort(ends, kind="stable").tolist()
    dead, heap = 0, _Heap()
    waiting = order.tolist()
    for count, index in enumerate(waiting):
        work.spend(_NS_A_BLOCK + _NS_A_GAP * heap.gaps)
        if work.over:
            stacked(problem, waiting[count:], heap.highest, offsets)
            break
        block = blocks[index]
        if block.start >= block.end or not block.size_bytes:
            continue
        start = block.start
        while blocks[dying[dead]].end <= start:
            gone = blocks[dying[dead]]
            if gone.start < gone.end and gone.size_bytes:
                heap.free(offsets[dying[dead]], gone.size_bytes)
            dead += 1
        offsets[index] = heap.take(block.size_bytes, block.alignment_bytes)
    return tuple(offsets)


class _Heap:
    """Memory without end; `highest` is where what was ever taken ends. Above `_top` all is free."""

    def __init__(self) -> None:
        self.highest = 0
        self._top = 0
        self._by_size: list[tuple[int, int]] = []
        self._end_of: dict[int, int] = {}
        self._begin_of: dict[int, int] = {}

    @property
    def gaps(self) -> int:
        return len(self._by_size)

    def take(self, size: int, unit: int) -> int:
        """An offset in the smallest gap that holds it, else on top."""
        by_size = self._by_size
        first = bisect_left(by_size, (size, -1))
        for place in range(first, min(first + _TRIED, len(by_size))):
            room, begin = by_size[place]
            offset = -(-begin // unit) * unit
            if offset + size <= begin + room:
                del by_size[place]
                end = self._end_of.pop(begin)
                del self._begin_of[end]
                self._gap(begin, offset)
                self._gap(offset + size, end)
                return offset
        offset = -(-self._top // unit) * unit
        self._gap(self._top, offset)
        self._top = offset + size
        self.highest = max(self.highest, self._top)
        return offset

    def free(self, begin: int, size: int) -> None:
        end = begin + size
        if begin in self._begin_of:  # a gap ends here
            begin = self._close(self._begin_of[begin])
        if end in self._end_of:
            upper = self._end_of[end]
            self._close(end)
            end = upper
        if end == self._top:
            self._top = begin
        else:
            self._gap(begin, end)

    def _gap(self, begin: int, end: int) -> None:
        if begin < end:
            insort(self._by_size, (end - begin, begin))
            self._end_of[begin] = end
            self._begin_of[end] = begin

    def _close(self, begin: int) -> int:
        """Forget the gap that ends there, and return where it begins."""
        end = self._end_of.pop(begin)
        del self._begin_of[end]
        del self._by_size[bisect_left(self._by_size, (end - begin, begin))]
        return begin
