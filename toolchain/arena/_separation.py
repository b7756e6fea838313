"""Which distances of two blocks are forbidden: one rule for all allocators.

The distance of block `i` from `j` is offset(i) - offset(j). Two plain blocks that are live together
forbid one open interval. Example: blocks of 100 (i) and 60 (j) bytes forbid the distances between
-100 and 60. Blocks whose live run changes from step to step forbid the union of one interval per
step, which may leave room between them. A pair that may share bytes forbids less.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from toolchain.ir import ArenaProblem, Block
from toolchain.ir.progress import Interval

_At = Mapping[int, Sequence[Interval]]
"""By the step: the distances that two blocks are forbidden where they may share bytes."""
_STEP = attrgetter("step")


class Separation:
    """Blocks of a problem that are live together, and the distances forbidden to them.

    `neighbours[i]` has, for each block j that is live when i is, j and the forbidden distances of i
    from j, ascending and disjoint. It is sorted by the birth of the later block. Apart from
    sorting, the work is linear in the number of such pairs.
    """

    def __init__(self, problem: ArenaProblem) -> None:
        blocks = problem.blocks
        shared: dict[tuple[int, int], dict[int, Sequence[Interval]]] = {}
        for pair in problem.shared:
            forbidden = problem.takeover(pair).forbidden()
            shared.setdefault((pair.dying, pair.born), {})[pair.step] = forbidden
            opposite = _negative(forbidden)
            shared.setdefault((pair.born, pair.dying), {})[pair.step] = opposite
        self.neighbours: list[list[tuple[int, Sequence[Interval]]]] = [[] for _ in blocks]
        alive: list[int] = []
        live = [i for i, block in enumerate(blocks) if block.start < block.end]
        for i in sorted(live, key=lambda i: blocks[i].start):
            start = blocks[i].start
            alive = [j for j in alive if blocks[j].end > start]
            for j in alive:
                intervals = _forbidden(blocks[i], blocks[j], shared.get((i, j), {}))
                if intervals:
                    self.neighbours[i].append((j, intervals))
                    self.neighbours[j].append((i, _negative(intervals)))
            alive.append(i)


def _forbidden(a: Block, b: Block, shared: _At) -> Sequence[Interval]:
    """Open intervals that the distance of `a` from `b` may not fall in."""
    if a.profile or b.profile or shared:
        return _of_runs(a, b, shared)
    return ((-a.size_bytes, b.size_bytes),)


def _negative(intervals: Sequence[Interval]) -> Sequence[Interval]:
    return tuple((-high, -low) for low, high in reversed(intervals))


def _of_runs(a: Block, b: Block, shared: _At) -> Sequence[Interval]:
    first, end = max(a.start, b.start), min(a.end, b.end)
    changes = (*(run.step for run in (*a.profile, *b.profile)), *shared, *(s + 1 for s in shared))
    steps = {first, *(step for step in changes if first < step < end)}
    runs_a, runs_b = a.runs, b.runs
    at_a = bisect_right(runs_a, first, key=_STEP) - 1
    at_b = bisect_right(runs_b, first, key=_STEP) - 1
    intervals: list[Interval] = []
    for step in sorted(steps):
        if step in shared:
            intervals += shared[step]
            continue
        while at_a + 1 < len(runs_a) and runs_a[at_a + 1].step <= step:
            at_a += 1
        while at_b + 1 < len(runs_b) and runs_b[at_b + 1].step <= step:
            at_b += 1
        mine, theirs = runs_a[at_a], runs_b[at_b]
        if mine.size_bytes and theirs.size_bytes:
            intervals.append(
                (theirs.bottom_bytes - mine.top_bytes, theirs.top_bytes - mine.bottom_bytes)
            )
    return _merged(intervals)


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Open intervals that only touch stay apart: the distance between them is allowed."""
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low < merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged
