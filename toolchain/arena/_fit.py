"""List allocation: blocks one after the other, each at the lowest offset where it fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import add, ne

from toolchain.arena._separation import Separation
from toolchain.ir import ArenaProblem


class Fitter:
    """Places the blocks of one problem, for any number of orders."""

    def __init__(self, problem: ArenaProblem, separation: Separation) -> None:
        blocks = problem.blocks
        self._units = [block.alignment_bytes for block in blocks]
        self._unplaced = [-1 if block.start < block.end else 0 for block in blocks]
        self._sizes = [b.size_bytes if b.start < b.end else 0 for b in blocks]
        self._distances = [
            [(other, low, high) for other, intervals in each for low, high in intervals]
            for each in separation.neighbours
        ]
        self.intervals = sum(len(each) for each in self._distances)
        """How many intervals the offset of one block may not fall in for another, in all."""

    @cached_property
    def _beside(self) -> list[int]:
        """A bit set for each block: itself, and the blocks that its place depends on."""
        return [
            sum({1 << other for other, _, _ in each}, 1 << index)
            for index, each in enumerate(self._distances)
        ]

    def fit(self, order: Iterable[int]) -> tuple[int, ...]:
        """Offsets of all blocks, placed in `order`. Blocks that are never live are left out, and
        get 0.

        A block that may share bytes with another is first tried on top of it.
        """
        offsets = self._unplaced.copy()
        for index in order:
            offsets[index] = self._lowest(index, offsets)
        return tuple(offsets)

    def fit_again(
        self, order: Sequence[int], moved: int, before: Sequence[int], offsets: Sequence[int]
    ) -> tuple[int, ...]:
        """As `fit`, with less work: `order` is `before` with the block `moved` at another place,
        and `fit(before)` returned `offsets`.

        Where the orders begin alike, and where no block beside one has changed, offsets stay.
        """
        placed = self._unplaced.copy()
        begin = next((i for i, at in enumerate(map(ne, order, before)) if at), 0)
        for index in order[:begin]:
            placed[index] = offsets[index]
        changed = 1 << moved
        for index in order[begin:]:
            if self._beside[index] & changed:
                placed[index] = self._lowest(index, placed)
                if placed[index] != offsets[index]:
                    changed |= 1 << index
            else:
                placed[index] = offsets[index]
        return tuple(placed)

    def _lowest(self, index: int, offsets: Sequence[int]) -> int:
        """The lowest offset among the blocks that are placed: those whose offset is not -1."""
        forbidden = [  # open ranges that the offset may not fall in
            (at + low, at + high)
            for other, low, high in self._distances[index]
            if (at := offsets[other]) >= 0
        ]
        forbidden.sort()
        unit, offset = self._units[index], 0
        for low, high in forbidden:
            if low >= offset:
                break
            if offset < high:
                offset = -(-high // unit) * unit
        return offset

    def size_bytes(self, offsets: Sequence[int]) -> int:
        """One past the last byte of the highest block, as the function `size_bytes`."""
        return max(map(add, offsets, self._sizes), default=0)


def fit(problem: ArenaProblem, order: Iterable[int]) -> tuple[int, ...]:
    """`Fitter.fit` for a single order."""
    return Fitter(problem, Separation(problem)).fit(order)


def live_blocks(problem: ArenaProblem) -> list[int]:
    """Indices of the blocks that are live at some step, ascending."""
    return [i for i, block in enumerate(problem.blocks) if block.start < block.end]


def size_bytes(problem: ArenaProblem, offsets: tuple[int, ...]) -> int:
    """One past the last byte of the highest block."""
    ends = (offsets[i] + problem.blocks[i].size_bytes for i in live_blocks(problem))
    return max(ends, default=0)
