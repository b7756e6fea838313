"""Greedy by breadth: the blocks of the step with the largest load first, the largest of them first.

Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", MLSys 2020,
algorithm 2 (a step's breadth is the sum of the blocks that are live in it), extended to blocks that
may share bytes.
"""

from __future__ import annotations

from bisect import bisect_left

from toolchain.arena._fit import live_blocks
from toolchain.arena._list import ListAllocator
from toolchain.ir import ArenaProblem


def by_breadth(problem: ArenaProblem) -> list[int]:
    """Blocks in the order of the widest step that they live in, then by decreasing size."""
    blocks = problem.blocks
    live = live_blocks(problem)
    starts = sorted({blocks[i].start for i in live})
    within = {
        i: range(bisect_left(starts, blocks[i].start), bisect_left(starts, blocks[i].end))
        for i in live
    }
    breadth = [0] * len(starts)
    for i in live:
        for k in within[i]:
            breadth[k] += blocks[i].size_bytes
    widest = sorted(range(len(starts)), key=lambda k: (-breadth[k], k))
    rank = {k: position for position, k in enumerate(widest)}
    first = {i: min(rank[k] for k in within[i]) for i in live}
    return sorted(live, key=lambda i: (first[i], -blocks[i].size_bytes, i))


ALLOCATOR = ListAllocator("greedy-breadth", by_breadth)
