"""Greedy by size: the largest block first, each at the lowest offset where it fits.

The method of TFLite's and TFLM's memory planners (Pisarchyk and Lee, "Efficient Memory Management
for Deep Neural Net Inference", MLSys 2020, algorithm 3), extended by blocks that may share bytes:
such a pair is first tried on top of each other.
"""

from __future__ import annotations

import time

from toolchain.arena._bounds import load_bound_bytes
from toolchain.ir import ArenaProblem, Placement, SharedPair


class GreedySize:
    name = "greedy-size"

    def place(self, problem: ArenaProblem, time_limit_seconds: float | None = None) -> Placement:
        """Quadratic in blocks; the time limit is never reached."""
        begin = time.perf_counter()
        blocks = problem.blocks
        shared = {(pair.dying, pair.born): pair for pair in problem.shared}
        offsets = [0] * len(blocks)
        placed: list[int] = []
        live = (i for i, block in enumerate(blocks) if block.start < block.end)
        for index in sorted(live, key=lambda i: (-blocks[i].size_bytes, blocks[i].start, i)):
            offsets[index] = _lowest_offset(problem, shared, offsets, placed, index)
            placed.append(index)
        size = max((offsets[i] + blocks[i].size_bytes for i in placed), default=0)
        return Placement(
            allocator=self.name,
            offsets=tuple(offsets),
            size_bytes=size,
            lower_bound_bytes=min(size, load_bound_bytes(problem)),
            seconds=time.perf_counter() - begin,
        )


def _lowest_offset(
    problem: ArenaProblem,
    shared: dict[tuple[int, int], SharedPair],
    offsets: list[int],
    placed: list[int],
    index: int,
) -> int:
    """The lowest aligned offset at which block `index` clears every placed block."""
    block = problem.blocks[index]
    forbidden: list[tuple[int, int]] = []  # half-open ranges that the offset may not fall in
    candidates = {0}
    for other in placed:
        neighbour = problem.blocks[other]
        if min(block.end, neighbour.end) <= max(block.start, neighbour.start):
            continue
        low, high = offsets[other] - block.size_bytes + 1, offsets[other] + neighbour.size_bytes
        ranges = [(low, high)]
        if (index, other) in shared:  # this one dies: it may start from the other's lead on
            pair = shared[index, other]
            first = offsets[other] + pair.lead_bytes
            ranges = [(low, min(high, first))]
            if pair.exact:
                ranges.append((max(low, first + 1), high))
        elif (other, index) in shared:  # this one is born: it may start up to the lead below
            pair = shared[other, index]
            last = offsets[other] - pair.lead_bytes
            ranges = [(max(low, last + 1), high)]
            if pair.exact:
                ranges.append((low, min(high, last)))
                candidates.add(last)
        for begin, end in ranges:
            if begin < end:
                forbidden.append((begin, end))
                candidates.add(end)
    alignment = block.alignment_bytes
    aligned = sorted({-(-candidate // alignment) * alignment for candidate in candidates})
    return next(
        offset
        for offset in aligned
        if offset >= 0 and not any(low <= offset < high for low, high in forbidden)
    )


ALLOCATOR = GreedySize()
