"""List allocation: blocks one after the other, each at the lowest offset where it fits."""

from __future__ import annotations

from collections.abc import Iterable

from toolchain.ir import ArenaProblem, SharedPair


def fit(problem: ArenaProblem, order: Iterable[int]) -> tuple[int, ...]:
    """Offsets of all blocks, placed in `order`. Blocks that never live are left out, and get 0.

    Quadratic in blocks. A block that may share bytes with another is first tried on top of it.
    """
    shared = {(pair.dying, pair.born): pair for pair in problem.shared}
    offsets = [0] * len(problem.blocks)
    placed: list[int] = []
    for index in order:
        offsets[index] = _lowest_offset(problem, shared, offsets, placed, index)
        placed.append(index)
    return tuple(offsets)


def live_blocks(problem: ArenaProblem) -> list[int]:
    return [i for i, block in enumerate(problem.blocks) if block.start < block.end]


def size_bytes(problem: ArenaProblem, offsets: tuple[int, ...]) -> int:
    """Where the highest block ends."""
    ends = (offsets[i] + problem.blocks[i].size_bytes for i in live_blocks(problem))
    return max(ends, default=0)


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
    for other in placed:
        neighbour = problem.blocks[other]
        if neighbour.end <= block.start or block.end <= neighbour.start:
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
        forbidden += [(begin, end) for begin, end in ranges if begin < end]
    forbidden.sort()
    unit, offset = block.alignment_bytes, 0
    for low, high in forbidden:
        if low <= offset < high:
            offset = -(-high // unit) * unit
    return offset
