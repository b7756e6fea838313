"""Greedy by size: the largest block first, each at the lowest offset where it fits.

The method of TFLite's memory planner (Pisarchyk and Lee, "Efficient Memory Management for Deep
Neural Net Inference", MLSys 2020, algorithm 3), extended to blocks that may share bytes.
"""

from __future__ import annotations

from toolchain.arena._fit import live_blocks
from toolchain.arena._list import ListAllocator
from toolchain.ir import ArenaProblem


def by_size(problem: ArenaProblem) -> list[int]:
    """Blocks by decreasing size, then by start."""
    blocks = problem.blocks
    return sorted(live_blocks(problem), key=lambda i: (-blocks[i].size_bytes, blocks[i].start, i))


ALLOCATOR = ListAllocator("greedy-size", by_size)
