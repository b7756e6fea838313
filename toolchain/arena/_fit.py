"""List allocation: blocks one after the other, each at the lowest offset where it fits."""

from __future__ import annotations

from collections.abc import Iterable

from toolchain.arena._separation import Separation
from toolchain.ir import ArenaProblem


class Fitter:
    """Places the blocks of one problem, for any number of orders."""

    def __init__(self, problem: ArenaProblem, separation: Separation) -> None:
        self._problem = problem
        self._separation = separation

    @property
    def intervals(self) -> int:
        """How many intervals the offset of one block may not fall in for another, in all."""
        return sum(len(inside) for each in self._separation.neighbours for _, inside in each)

    def fit(self, order: Iterable[int]) -> tuple[int, ...]:
        """Offsets of all blocks, placed in `order`. Blocks that are never live are left out, and
        get 0.

        A block that may share bytes with another is first tried on top of it.
        """
        blocks, neighbours = self._problem.blocks, self._separation.neighbours
        offsets, placed = [0] * len(blocks), [False] * len(blocks)
        for index in order:
            forbidden: list[tuple[int, int]] = []  # open ranges that the offset may not fall in
            for other, intervals in neighbours[index]:
                if placed[other]:
                    at = offsets[other]
                    forbidden += [(at + low, at + high) for low, high in intervals]
            forbidden.sort()
            unit, offset = blocks[index].alignment_bytes, 0
            for low, high in forbidden:
                if low < offset < high:
                    offset = -(-high // unit) * unit
            offsets[index] = offset
            placed[index] = True
        return tuple(offsets)


def fit(problem: ArenaProblem, order: Iterable[int]) -> tuple[int, ...]:
    """`Fitter.fit` for a single order."""
    return Fitter(problem, Separation(problem)).fit(order)


def live_blocks(problem: ArenaProblem) -> list[int]:
    return [i for i, block in enumerate(problem.blocks) if block.start < block.end]


def size_bytes(problem: ArenaProblem, offsets: tuple[int, ...]) -> int:
    """One past the last byte of the highest block."""
    ends = (offsets[i] + problem.blocks[i].size_bytes for i in live_blocks(problem))
    return max(ends, default=0)
