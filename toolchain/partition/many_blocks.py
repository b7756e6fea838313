"""The blocks of one region as they will run, for several numbers of blocks at once.

Each array holds one entry per block, those of the first number of blocks first. The same as
`blocks.blocks`, without building anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.spec import Reach
from toolchain.partition.blocks import Mode
from toolchain.partition.region import Region
from toolchain.partition.takeovers import FAR

_Ints = NDArray[np.int64]
_Flags = NDArray[np.bool_]


class ManyBlocks:
    """`valid`: for each number of blocks, whether there can be so many."""

    def __init__(self, region: Region, counts: Sequence[int], mode: Mode) -> None:
        self.region, self.mode = region, mode
        self.graph = region.graph
        self.counts = np.asarray(counts, np.int64)
        self.starts = np.cumsum(self.counts) - self.counts
        self.of = np.repeat(self.counts, self.counts)  # number of blocks
        self.k = np.arange(len(self.of)) - np.repeat(self.starts, self.counts)
        self.valid = np.ones(len(self.counts), np.bool_)
        self.place = {region.op(op).outputs[0]: at for at, op in enumerate(region.ops)}
        self.inner = [self.reaches(op, inner=True) for op in region.ops]
        self.size = [region.length(op) for op in region.ops]

    def reaches(self, op: int, *, inner: bool) -> list[tuple[str, Reach]]:
        found = zip(self.region.op(op).inputs, self.region.reaches(op), strict=True)
        return [(n, r) for n, r in found if n and r is not None and (n in self.place or not inner)]

    def invalid(self, where: _Flags) -> None:
        self.valid &= ~np.logical_or.reduceat(where, self.starts)

    def bound(self, size: int) -> tuple[_Ints, _Ints]:
        """The even share of each block."""
        return -(-size * self.k // self.of), -(-size * (self.k + 1) // self.of)

    def previous(self, values: _Ints) -> _Ints:
        """Of the block before; 0 where there is none."""
        result = np.empty_like(values)
        result[1:] = values[:-1]
        result[self.starts] = 0
        return result

    def next(self, values: _Ints) -> _Ints:
        """Of the block after; FAR where there is none."""
        result = np.empty_like(values)
        result[:-1], result[-1] = values[1:], FAR
        result[self.starts[1:] - 1] = FAR
        return result

    def runs(self) -> tuple[list[_Ints], list[_Ints]]:
        """Where the blocks of each operator begin and end; not all are computed."""
        return self._tiles() if self.mode is Mode.TILES else self._slides()

    def _slides(self) -> tuple[list[_Ints], list[_Ints]]:
        """See `blocks._slides`."""
        begins: list[_Ints] = []
        ends: list[_Ints] = []
        for size, reaches in zip(self.size, self.inner, strict=True):
            if reaches:
                end = np.full(len(self.of), size, np.int64)
            else:
                end = self.bound(size)[1]
                self.invalid(self.of > size)
            for name, reach in reaches:
                there = ends[self.place[name]]
                possible = reach.possible(there)
                limit = np.where(there < self.size[self.place[name]], possible, size)
                end = np.clip(limit, 0, end)
            begins.append(self.previous(end))
            ends.append(end)
        return begins, ends

    def _tiles(self) -> tuple[list[_Ints], list[_Ints]]:
        """See `blocks._tiles`."""
        outputs = (*self.region.joined, *self.region.reduced)
        begins = [np.full(len(self.of), FAR) for _ in self.size]
        ends = [np.zeros(len(self.of), np.int64) for _ in self.size]
        for name in outputs:
            at = self.place[name]
            self.invalid(self.of > self.size[at])
            begins[at], ends[at] = self.bound(self.size[at])
        shares = {name: (begins[self.place[name]], ends[self.place[name]]) for name in outputs}
        for at in reversed(range(len(self.size))):
            for name, reach in self.inner[at]:
                other = self.place[name]
                low, high = needed(reach, begins[at], ends[at], self.size[other])
                self.invalid(low >= high)
                begins[other] = np.minimum(begins[other], low)
                ends[other] = np.maximum(ends[other], high)
        for name, (first, last) in shares.items():
            at = self.place[name]
            self.invalid((begins[at] != first) | (ends[at] != last))
        return begins, ends


def needed(reach: Reach, begin: _Ints, end: _Ints, size: int) -> tuple[_Ints, _Ints]:
    """`Reach.needs` for many runs."""
    return np.maximum(reach.first(begin), 0), np.minimum(reach.last(end), size)
