"""An arena over several memory banks, the most accessed blocks in the fastest.

1. `assign` chooses banks by the load of each step.

2. An allocator places each bank. If it needs more bytes than the bank has, the bank's limit is
lowered by the excess and step 1 is repeated.

3. If that ends without an answer, one program decides banks and offsets together.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.arena import Allocator
from toolchain.arena._bounds import load_bound_bytes
from toolchain.arena.banks.assignment import assign, load_bytes, nonempty_blocks, place_jointly
from toolchain.ir import ArenaProblem, Bank, Spread

SECONDS = 10.0
_ROUNDS = 8


def spread(
    problem: ArenaProblem,
    banks: Sequence[Bank],
    accesses: Sequence[int],
    allocator: Allocator,
    time_limit_seconds: float | None = None,
) -> Spread | None:
    """Place every block in one of the banks; None if no way was found.

    `accesses`: bytes read and written of each block.
    """
    limit = SECONDS if time_limit_seconds is None else time_limit_seconds
    live = nonempty_blocks(problem)
    bound = _bound_bytes(problem, live, len(banks))
    largest = max((problem.blocks[i].size_bytes for i in live), default=0)
    room = [bank.size_bytes for bank in banks]
    if bound > sum(room) or largest > max(room, default=0):
        return None
    limits = list(room)
    for _ in range(_ROUNDS):
        bank_of = assign(problem, banks, limits, accesses, limit)
        if bank_of is None:
            break
        placed = [_placed(problem, bank_of, k, allocator, limit / 4) for k in range(len(banks))]
        excess = [size - bank.size_bytes for (_, size), bank in zip(placed, banks, strict=True)]
        if max(excess) <= 0:
            offsets = [placed[k][0].get(i, 0) for i, k in enumerate(bank_of)]
            used = tuple(size for _, size in placed)
            return Spread(allocator.name, tuple(banks), bank_of, tuple(offsets), used, bound)
        for k, over in enumerate(excess):
            if over > 0:
                limits[k] = min(limits[k], _peak(problem, bank_of, k)) - over
    jointly = place_jointly(problem, banks, accesses, limit)
    if jointly is None:
        return None
    bank_of, positions = jointly
    ends = [0] * len(banks)
    for i in live:
        ends[bank_of[i]] = max(ends[bank_of[i]], positions[i] + problem.blocks[i].size_bytes)
    return Spread(allocator.name, tuple(banks), bank_of, positions, tuple(ends), bound)


def _bound_bytes(problem: ArenaProblem, live: Sequence[int], count: int) -> int:
    """A lower bound on the bytes in all banks; only the last granule of each may be broken."""
    unit = max((problem.blocks[i].alignment_bytes for i in live), default=1)
    return max(0, load_bound_bytes(problem) - count * (unit - 1))


def _chosen(problem: ArenaProblem, bank_of: Sequence[int], bank: int) -> list[int]:
    return [i for i in nonempty_blocks(problem) if bank_of[i] == bank]


def _peak(problem: ArenaProblem, bank_of: Sequence[int], bank: int) -> int:
    chosen = _chosen(problem, bank_of, bank)
    loads = (
        load_bytes(problem, chosen, step) for step in {problem.blocks[i].start for i in chosen}
    )
    return max((load - sum(saved for _, saved in savings) for load, savings in loads), default=0)


def _placed(
    problem: ArenaProblem, bank_of: Sequence[int], bank: int, allocator: Allocator, seconds: float
) -> tuple[dict[int, int], int]:
    """Offsets of a bank's blocks, and where they end."""
    chosen = _chosen(problem, bank_of, bank)
    if not chosen:
        return {}, 0
    placement = allocator.place(problem.of(chosen), seconds)
    return dict(zip(chosen, placement.offsets, strict=True)), placement.size_bytes
