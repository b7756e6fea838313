"""First fit: blocks in the order of their births, as an allocator at run time would meet them."""

from __future__ import annotations

from toolchain.arena._fit import live_blocks
from toolchain.arena._list import ListAllocator
from toolchain.ir import ArenaProblem


def by_start(problem: ArenaProblem) -> list[int]:
    """Blocks by start; those that start together as given."""
    return sorted(live_blocks(problem), key=lambda i: (problem.blocks[i].start, i))


ALLOCATOR = ListAllocator("first-fit", by_start)
