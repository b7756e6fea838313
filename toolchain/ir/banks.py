"""An arena spread over memory banks: the problem, the answer, and an independent checker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolchain.ir.arena import (
    ArenaPart,
    ArenaPlan,
    ArenaProblem,
    Placement,
    arena_plan,
    check_placement,
)
from toolchain.ir.memory import MemoryProblem

GAP_BYTES = 64
"""The least number of unused offsets between two parts."""


@dataclass(frozen=True)
class Bank:
    """Memory that may hold part of an arena. An access takes about `access_cycles` cycles."""

    name: str
    size_bytes: int
    access_cycles: int = 1


@dataclass(frozen=True)
class Spread:
    """The bank (by index) and the offset in it of each block, and the bytes used of each bank.

    `lower_bound_bytes`: no placement uses fewer bytes in all banks together.
    """

    allocator: str
    banks: tuple[Bank, ...]
    bank_of: tuple[int, ...]
    offsets: tuple[int, ...]
    used_bytes: tuple[int, ...]
    lower_bound_bytes: int

    @property
    def size_bytes(self) -> int:
        return sum(self.used_bytes)

    @property
    def starts_bytes(self) -> tuple[int, ...]:
        """First offset of each bank in one address range for all banks, with gaps between them."""
        starts, end = [], 0
        for used in self.used_bytes:
            starts.append(end)
            end = -(-(end + used + GAP_BYTES) // GAP_BYTES) * GAP_BYTES
        return tuple(starts)

    def placement(self) -> Placement:
        """All banks in one address range, with gaps between them."""
        starts = self.starts_bytes
        offsets = [starts[k] + at for k, at in zip(self.bank_of, self.offsets, strict=True)]
        end = max(start + used for start, used in zip(starts, self.used_bytes, strict=True))
        return Placement(self.allocator, tuple(offsets), end, self.lower_bound_bytes)


def check_spread(problem: ArenaProblem, spread: Spread) -> None:
    """Raise ValueError, with the reason, unless each block lies in one bank and all is valid.

    Shares no code with any allocator. Blocks may share bytes as `check_placement` allows.
    """
    if len(spread.bank_of) != len(problem.blocks) or len(spread.offsets) != len(problem.blocks):
        raise ValueError(f"wrong count: {len(spread.offsets)} for {len(problem.blocks)} blocks")
    if len(spread.used_bytes) != len(spread.banks):
        raise ValueError(f"wrong count: {len(spread.used_bytes)} for {len(spread.banks)} banks")
    for bank, used in zip(spread.banks, spread.used_bytes, strict=True):
        if not 0 <= used <= bank.size_bytes:
            raise ValueError(f"too full: {bank.name} holds {used} of {bank.size_bytes} bytes")
    for block, index, offset in zip(problem.blocks, spread.bank_of, spread.offsets, strict=True):
        if not 0 <= index < len(spread.banks):
            raise ValueError(f"no such bank: {block.name!r} in bank {index}")
        if block.start < block.end and not (
            0 <= offset <= offset + block.size_bytes <= spread.used_bytes[index]
        ):
            raise ValueError(
                f"across a border: {block.name!r} [{offset}, {offset + block.size_bytes}) leaves "
                f"the {spread.used_bytes[index]} bytes used of {spread.banks[index].name}"
            )
    check_placement(problem, spread.placement())


def spread_plan(
    problem: MemoryProblem, order: Sequence[int], spread: Spread, blocks: ArenaProblem
) -> ArenaPlan:
    """The plan of a spread arena: the offset of every tensor. Empty banks are left out."""
    plan = arena_plan(problem, order, spread.placement(), blocks)
    parts = tuple(
        ArenaPart(bank.name, start, used)
        for bank, start, used in zip(
            spread.banks, spread.starts_bytes, spread.used_bytes, strict=True
        )
        if used
    )
    return replace(plan, size_bytes=spread.size_bytes, parts=parts)
