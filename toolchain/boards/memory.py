"""Banks of memory, what they may hold, and how long an access to them takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

GUARD_BYTES = 4096
"""Bytes below the stack to which the MPU refuses all access. The stack lies at the bottom of its
bank. A power of two; each bank that may hold data begins at a multiple of it."""


class MemoryKind(Enum):
    """RAM or flash."""

    RAM = "ram"
    FLASH = "flash"


class Content(Enum):
    """The contents that a memory may hold. `DATA` is .data, .bss and the stack; `COPIES` are
    constants that the start-up copies from flash, because they are read sooner from there.
    """

    CODE = "code"
    WEIGHTS = "weights"
    DATA = "data"
    ARENA = "arena"
    COPIES = "copies"


Cached = Literal["instructions", "data"]
"""Accesses that go through a cache: fetches of instructions, or loads and stores."""

Replacement = Literal["lru", "random", "round robin"]
"""Which line of a full set a cache gives up."""


@dataclass(frozen=True)
class MemoryTiming:
    """How many cycles of the core an access waits, at one clock of the core.

    `read_cycles`: stall of a first read, from outside every cache; 0: none. `width_bytes`: bytes
    that one access delivers. `burst_cycles`: stall of each further `width_bytes` in the fill of a
    cache line. `write_cycles`: stall of a write. `prefetch`: the next `width_bytes` of
    instructions are fetched while the core executes these.
    """

    read_cycles: int
    width_bytes: int
    burst_cycles: int = 0
    write_cycles: int = 0
    prefetch: bool = False


@dataclass(frozen=True)
class Memory:
    """A bank. `origin` is its address for the core. Banks are listed best first.

    `access_cycles`: about how many cycles an uncached load takes; used only to compare banks.
    `timing`: at the clock of the board; None where it is not known. `code_origin`: the address at
    which the core fetches instructions from RAM without waiting; None: code is not copied there.
    `beside`: it lies beside the chip.
    """

    name: str
    origin: int
    size_bytes: int
    kind: MemoryKind
    holds: frozenset[Content]
    access_cycles: int = 1
    timing: MemoryTiming | None = None
    code_origin: int | None = None
    beside: bool = False

    @property
    def end(self) -> int:
        return self.origin + self.size_bytes

    def covers(self, other: Memory) -> bool:
        return self.origin <= other.origin and other.end <= self.end


@dataclass(frozen=True)
class Cache:
    """A cache before the banks named in `memories`: `sets` of `ways` lines.

    `write_back`: a store to a line that it holds waits in the cache; otherwise stores pass through.
    `sector_bytes`: the bytes of a line that a miss brings in; the rest waits for a miss of its own;
    0: the whole line.
    """

    name: str
    holds: frozenset[Cached]
    memories: tuple[str, ...]
    line_bytes: int
    ways: int
    sets: int
    replacement: Replacement = "lru"
    write_back: bool = False
    sector_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        return self.line_bytes * self.ways * self.sets

    @property
    def filled_bytes(self) -> int:
        """Bytes that a miss brings in."""
        return self.sector_bytes or self.line_bytes
