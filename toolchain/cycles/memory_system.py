"""Memories and caches: what QEMU's plugin is told to simulate, and the stalls that follow from it.

The plugin counts, for each instruction, words loaded and stored by region and lines that a cache
did not hold; here they become cycles that the core waits, by `MemoryTiming`:

- A line that a load brings into a cache: `read_cycles`, and `burst_cycles` for each further
  `width_bytes` of the line. Where misses bring in sectors, each is as a line here. A word that a
  cache holds: none.
- A load from a region without a cache: `read_cycles` a word. Where an access delivers more than a
  word, its bytes are kept until the next one and count as a cache of one line.
- A line of instructions: `read_cycles` until its first part is there, and of the cycles that its
  other parts take what one pass through the line does not hide: the core runs what has come. Where
  the memory prefetches, one read follows the other, each keeping the memory busy for a cycle more
  than it would stall the core: a line that follows the line before costs what is left of its read
  after one pass through that one, and at most what it costs alone. Where it does not, the core
  still fetches ahead of what it executes, a word a cycle after the first. Passes take the core's
  cycles; without them, one an instruction.
- A store: `write_cycles` a word where it passes to the memory, none where it stays in a cache. A
  written line that is pushed out: `write_cycles` for each `width_bytes`. A line that a store
  brings into a cache: none; the core goes on while the store waits in a buffer.

Left out: that a load's own word may come first, and the core run on under a miss; contention of
buses between instructions, data, DMA and refresh; speculative fetches; prefetch of data; what
interrupts, and the host's requests between runs, do to a cache.
A line of instructions brought by prefetch is kept in the cache, though ST's ART accelerator keeps
only what it had to wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from toolchain.boards import Cache, Memory, MemoryTiming
from toolchain.boards.memory import Cached
from toolchain.cycles.trace import Counts, Section, Traffic
from toolchain.packages import lazy

if TYPE_CHECKING:
    from elftools.elf import constants, elffile
else:
    constants, elffile = lazy("elftools.elf.constants"), lazy("elftools.elf.elffile")

_WORD_BYTES = 4
_NO_STALL = MemoryTiming(0, _WORD_BYTES)


@dataclass(frozen=True)
class Region:
    """Addresses of the traced firmware, and the memory that they stand for; none: another one for
    each region."""

    name: str
    origin: int
    size_bytes: int
    timing: MemoryTiming = _NO_STALL
    stands_for: str = ""

    def holds(self, address: int) -> bool:
        return self.origin <= address < self.origin + self.size_bytes

    def fill_cycles(self, filled_bytes: int) -> int:
        """The stall until what a miss brings in has been read."""
        timing = self.timing
        further = -(-filled_bytes // timing.width_bytes) - 1
        return timing.read_cycles + further * timing.burst_cycles


@dataclass(frozen=True)
class Stall:
    """Cycles that the core waits at an address: for instructions, and for data."""

    fetch: float = 0.0
    data: float = 0.0

    @property
    def total(self) -> float:
        return self.fetch + self.data


@dataclass(frozen=True)
class MemorySystem:
    """Memories by address, with their caches. Without regions, loads and stores are not counted.

    `caches`: the first one that holds instructions (or data) and covers a region serves it. Their
    `memories` are names of `regions`.
    """

    regions: tuple[Region, ...] = ()
    caches: tuple[Cache, ...] = ()

    @property
    def region_names(self) -> tuple[str, ...]:
        return tuple(region.name for region in self.regions)

    def plugin_arguments(self) -> tuple[str, ...]:
        """The arguments of `runtime_c/qemu/instruction_counts.c` that describe it."""
        regions = (f"region={region.origin:x}:{region.size_bytes:x}" for region in self.regions)
        return (*regions, *(self._cache_argument(cache) for cache in self.caches))

    def _cache_argument(self, cache: Cache) -> str:
        covered = sum(1 << i for i, name in enumerate(self.region_names) if name in cache.memories)
        words = (
            "+".join(sorted(cache.holds)),
            str(cache.line_bytes),
            str(cache.filled_bytes),
            str(cache.ways),
            str(cache.sets),
            cache.replacement.replace(" ", ""),
            "back" if cache.write_back else "through",
            f"{covered:x}",
        )
        return f"cache={':'.join(words)}"

    def cache_of(self, region: str, held: Cached) -> Cache | None:
        """The cache that serves instructions or data of a region; None without one."""
        covering = (c for c in self.caches if held in c.holds and region in c.memories)
        return next(covering, None)

    def are_apart(self, one: Counts, other: Counts) -> bool:
        """Whether two instructions load, and never from the same memory."""
        first, second = self._loaded(one), self._loaded(other)
        return bool(first and second) and not first & second

    def _loaded(self, counts: Counts) -> frozenset[str]:
        return frozenset(
            region.stands_for or region.name
            for region in self.regions
            if region.name in counts.traffic and counts.traffic[region.name].loads
        )

    def stalls(
        self, section: Section, core_cycles: Mapping[int, float] | None = None
    ) -> Mapping[int, Stall]:
        """The stalls by address, of all executions together; an address without any is absent.

        `core_cycles`: cycles of the core by address, of all executions together, in which a
        prefetch goes on.
        """
        lines = _Lines(section, core_cycles)
        stalls_at = {
            address: Stall(self._fetch_stall(address, counts, lines), self._data_stall(counts))
            for address, counts in section.counts.items()
        }
        return MappingProxyType({at: stall for at, stall in stalls_at.items() if stall.total})

    def _fetch_stall(self, address: int, counts: Counts, lines: _Lines) -> float:
        if not counts.jump_misses and not counts.sequential_misses:
            return 0.0
        region = next(region for region in self.regions if region.holds(address))
        cache = self.cache_of(region.name, "instructions")
        assert cache is not None, "lines are counted where there is a cache"
        size = cache.filled_bytes
        line = (address + counts.size_bytes - 1) // size
        first, whole = region.timing.read_cycles, region.fill_cycles(size)
        alone = first + max(0.0, whole - first - lines.cycles_to_jump(line, size))
        if region.timing.prefetch:
            left = whole + 1 - lines.cycles_to_end(line - 1, size)
        else:
            left = whole + size // _WORD_BYTES - lines.cycles_to_jump(line - 1, size)
        following = min(alone, max(0.0, left))
        return counts.jump_misses * alone + counts.sequential_misses * following

    def _data_stall(self, counts: Counts) -> float:
        return sum(self._traffic_stall(region, counts.traffic) for region in self.regions)

    def _traffic_stall(self, region: Region, traffic: Mapping[str, Traffic]) -> float:
        if region.name not in traffic:
            return 0.0
        seen, timing = traffic[region.name], region.timing
        cache = self.cache_of(region.name, "data")
        if cache is None:
            return seen.loads * timing.read_cycles + seen.stores * timing.write_cycles
        stall = seen.load_misses * region.fill_cycles(cache.filled_bytes)
        if not cache.write_back:
            return stall + seen.stores * timing.write_cycles
        written = -(-cache.line_bytes // timing.width_bytes)
        return stall + seen.write_backs * written * timing.write_cycles


class _Lines:
    """Cycles of the core by lines of instructions."""

    def __init__(self, section: Section, core_cycles: Mapping[int, float] | None) -> None:
        self._counts = section.counts
        self._cycles = core_cycles

    def _inside(self, line: int, line_bytes: int) -> tuple[float, Sequence[Counts]]:
        """Cycles of a line, and the counts of its instructions."""
        addresses = range(line * line_bytes, (line + 1) * line_bytes)
        inside = [(at, self._counts[at]) for at in addresses if at in self._counts]
        cycles = (
            counts.executions if self._cycles is None else self._cycles.get(at, 0.0)
            for at, counts in inside
        )
        return sum(cycles), [counts for _, counts in inside]

    def cycles_to_end(self, line: int, line_bytes: int) -> float:
        """Cycles that a line takes for each time that it is left at its end; loops in it count."""
        cycles, inside = self._inside(line, line_bytes)
        return cycles / max(inside[-1].executions - inside[-1].taken, 1) if inside else 0.0

    def cycles_to_jump(self, line: int, line_bytes: int) -> float:
        """Cycles that a line takes for each time that a branch is taken in it or its end passed."""
        cycles, inside = self._inside(line, line_bytes)
        taken = sum(counts.taken for counts in inside)
        passed = inside[-1].executions - inside[-1].taken if inside else 0
        return cycles / max(taken + passed, 1)


def bytes_used(elf: Path, banks: Sequence[Memory]) -> Mapping[str, int]:
    """How many bytes of each bank a firmware takes, stack included; by name of the bank."""
    with elf.open("rb") as file:
        sections = [
            s
            for s in elffile.ELFFile(file).iter_sections()
            if s["sh_flags"] & constants.SH_FLAGS.SHF_ALLOC
        ]
        spans = [(s["sh_addr"], s["sh_size"]) for s in sections]
    return {
        bank.name: sum(size for start, size in spans if bank.origin <= start < bank.end)
        for bank in banks
    }


def stands_for(bank: Memory, target: Sequence[Memory], used_bytes: int = 0) -> Memory:
    """The bank of a target that is meant where a firmware uses `bank` of the board that ran it.

    RAM stands for RAM, where there is any. Banks that share most contents with `bank` go first: the
    first of them in which `used_bytes` fit is taken; where they fit in none, the largest.
    """
    candidates = [memory for memory in target if memory.kind is bank.kind] or target
    roomy = [memory for memory in candidates if memory.size_bytes >= used_bytes]
    if roomy:
        return max(roomy, key=lambda memory: len(memory.holds & bank.holds))
    return max(candidates, key=lambda memory: memory.size_bytes)


def memory_system(
    traced: Sequence[Memory],
    target: Sequence[Memory],
    caches: Sequence[Cache],
    used_bytes: Mapping[str, int] = MappingProxyType({}),
) -> MemorySystem:
    """The memories of `target`, with its `caches`, at the addresses of the board that runs.

    `traced` may be `target`. `used_bytes`: of each traced bank, as `bytes_used` finds them. A bank
    whose timing is not known never waits.
    """
    pairs = [
        (bank, bank if bank in target else stands_for(bank, target, used_bytes.get(bank.name, 0)))
        for bank in traced
        if bank.holds
    ]
    regions = tuple(
        Region(bank.name, bank.origin, bank.size_bytes, meant.timing or _NO_STALL, meant.name)
        for bank, meant in pairs
    )
    over = [
        replace(cache, memories=tuple(b.name for b, meant in pairs if meant.name in cache.memories))
        for cache in caches
    ]
    covering = tuple(cache for cache in over if cache.memories)
    return MemorySystem(regions, (*covering, *_buffers(MemorySystem(regions, covering))))


def _buffers(system: MemorySystem) -> list[Cache]:
    """Buffers, as caches of one line, for the bytes that an access delivers beyond the word asked
    for, where no cache keeps them."""
    kinds: tuple[Cached, ...] = ("instructions", "data")
    return [
        Cache(f"{region.name}: last {held}", frozenset({held}), (region.name,), width, 1, 1)
        for region in system.regions
        for held in kinds
        if region.timing.read_cycles and system.cache_of(region.name, held) is None
        for width in (max(region.timing.width_bytes, _WORD_BYTES),)
        if held == "instructions" or width > _WORD_BYTES
    ]
