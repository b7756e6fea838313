"""Blocks of different heights: as tall as a limit on live bytes allows at each place.

The live bytes change from the first block of a region to the last: rows of its inputs die, rows of
its outputs stay. So even blocks are at the peak once, and smaller before or after. Blocks that come
near the limit everywhere are fewer for the same peak, and every block costs calls, moves, and rows
that kernels prepare again.

The bytes of a block follow from where it begins and ends alone; in `Mode.LINES`, where operators
are late by what later blocks need, nearly so. A shortest path over these places therefore gives,
for a limit, the blocks with the fewest calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from toolchain.partition.program import BlockProgram, Heights
from toolchain.partition.walk import live_bytes

_FALL = 0.96
"""From one limit to the next."""
_TALLER = 1.2
"""Least ratio of two heights that are tried."""


class _Block(NamedTuple):
    """`calls`: of operators. `peak_bytes`: live at once, but for scratch."""

    end: int
    calls: int
    peak_bytes: int


class _Path(NamedTuple):
    """The blocks from a place to the end, by the `end` of the first."""

    calls: int
    peak_bytes: int
    end: int


def shifted(size: int) -> list[Heights]:
    """Even blocks of many heights from each place where blocks of that height may begin: of every
    place and height the block is one of them. `size`: the indices that they divide.
    """
    found = []
    height = 1
    while height < size:
        for first in range(height):
            count, rest = divmod(size - first, height)
            found.append((first,) * (first > 0) + (height,) * count + (rest,) * (rest > 0))
        height = max(height + 1, math.floor(_TALLER * height))
    return found


def uneven(program: BlockProgram, size: int, dying: frozenset[str]) -> list[Heights]:
    """The blocks with the fewest calls for each of several falling limits on the bytes. `program`:
    of `shifted` blocks of a region. `dying`: as in `walk.Walk`.
    """
    places = _places(program, size, dying)
    found: dict[Heights, None] = {}
    limit = max((block.peak_bytes for blocks in places.values() for block in blocks), default=0)
    while path := _path(places, size, limit):
        heights, peak_bytes = path
        if len(set(heights[:-1])) > 1:
            found[heights] = None
        limit = min(int(limit * _FALL), peak_bytes - 1)
    return list(found)


def _places(
    program: BlockProgram, size: int, dying: frozenset[str]
) -> Mapping[int, Sequence[_Block]]:
    """The blocks that begin at each place."""
    heights, peaks = program.heights.tolist(), live_bytes(program, dying).tolist()
    calls = np.sum([step.computed for step in program.steps], axis=0).tolist()
    places: dict[int, dict[int, _Block]] = {}
    for valid, start, count in zip(
        program.valid.tolist(), program.starts.tolist(), program.counts.tolist(), strict=True
    ):
        begin = 0
        for at in range(start, start + count if valid else start):
            end = begin + heights[at]
            places.setdefault(begin, {})[end] = _Block(end, calls[at], peaks[at])
            begin = end
    return {begin: tuple(blocks.values()) for begin, blocks in places.items()}


def _path(
    places: Mapping[int, Sequence[_Block]], size: int, limit: float
) -> tuple[Heights, int] | None:
    """The heights of the blocks with the fewest calls of which none takes more bytes than the
    limit, and what they take; None where there are none.
    """
    paths = {size: _Path(0, 0, size)}
    for begin in range(size - 1, -1, -1):
        paths_on = [
            _Path(block.calls + path.calls, max(block.peak_bytes, path.peak_bytes), block.end)
            for block in places.get(begin, ())
            if block.peak_bytes <= limit and (path := paths.get(block.end)) is not None
        ]
        if paths_on:
            paths[begin] = min(paths_on)
    if 0 not in paths:
        return None
    heights = tuple(_heights(paths, size))
    return heights, paths[0].peak_bytes


def _heights(paths: Mapping[int, _Path], size: int) -> Iterator[int]:
    at = 0
    while at < size:
        yield paths[at].end - at
        at = paths[at].end
