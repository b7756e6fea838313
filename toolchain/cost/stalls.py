"""Cycles that a core waits for flash: lines that its caches lack, times the cycles of a read.

How often a cache lacks a line follows from the kernel's loops and the cache's geometry alone; it is
fitted over the grid with the caches of each family of chips (`coefficients/`, files of kind
`caches`). The cost of a line follows from the chip's memory at the board's clock. So another clock,
or another chip with such caches, needs no new fit.

A line of instructions is lacked after a jump or in sequence, and costs what
`cycles.memory_system` says, of which the core's own cycles hide a part. Constants stream: each pass
over them fetches every line again, unless the cache holds them all (`lacked_share`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from types import MappingProxyType

from toolchain.boards import Board, Cache, Content, Memory, Target
from toolchain.boards.memory import Cached
from toolchain.cost.fitted import COEFFICIENTS, sum_over
from toolchain.cycles.memory_system import MemorySystem, Region, memory_system
from toolchain.ops.kernel import Terms

_CODE_BYTES = 24 * 1024
"""About what the firmware's code takes of a bank that holds constants, too."""
_CODE_SHARE_BYTES = 1024
"""Supposed of a loop's code, in a cache that holds instructions and constants."""
_HELD_LINES = 64
"""A smaller cache holds no constants from one run of a kernel to the next."""
CONSTANT_LINE = "constant line"


@dataclass(frozen=True)
class Events:
    """Lines that the caches lack in an iteration of each loop of one kernel.

    `jump`, `sequential`: lines of instructions. `constants`: lines of data in the memory of
    constants, by `constant_terms`. Instructions that run in the meantime hide `jump_cycles` of the
    parts of a line beyond the first, and `sequential_cycles` of a line that is fetched ahead.
    """

    jump: Terms
    sequential: Terms
    constants: Terms
    jump_cycles: float
    sequential_cycles: float

    def of_other_lines(self, code: float, constants: float) -> Events:
        """Events for caches whose lines of instructions (`code`) and constants are so many times
        shorter: streams take so many times more lines.
        """
        return Events(
            _scaled(self.jump, code),
            _scaled(self.sequential, code),
            _scaled(self.constants, constants),
            self.jump_cycles / code,
            self.sequential_cycles / code,
        )

    @property
    def identity(self) -> Hashable:
        """Every field."""
        terms = self.jump, self.sequential, self.constants
        return (
            *(frozenset(each.items()) for each in terms),
            self.jump_cycles,
            self.sequential_cycles,
        )


@dataclass(frozen=True)
class Reach:
    """A memory and the cache through which the core reads it."""

    region: Region
    cache: Cache

    @property
    def fill_cycles(self) -> int:
        """Cycles of stall until a line is there."""
        return self.region.fill_cycles(self.cache.filled_bytes)

    @property
    def busy_cycles(self) -> int:
        """Cycles to read a line of instructions while the core runs the one before: by a prefetch,
        or because the core fetches ahead, a word a cycle.
        """
        words = self.cache.filled_bytes // 4
        return self.fill_cycles + (1 if self.region.timing.prefetch else words)

    @property
    def identity(self) -> Hashable:
        """All that `Stalls.cycles` reads: the cycles of a first read, of a line, and of a line of
        instructions; and the cache but for its name, the banks behind it, and its stores.
        """
        cache = replace(self.cache, name="", memories=(), write_back=False)
        return self.region.timing.read_cycles, self.fill_cycles, self.busy_cycles, cache


@dataclass(frozen=True)
class Stalls:
    """The memories of a target that make its core wait, and how often kernels lack their lines.

    `copies`: how data are read from each bank that may hold copies of constants; None: never late.
    `beyond`: banks for constants behind `constants`, each with the bytes that the banks before it
    hold.
    """

    code: Reach
    constants: Reach
    kernels: Mapping[str, Events]
    copies: Mapping[str, Reach | None] = field(default_factory=lambda: MappingProxyType({}))
    beyond: tuple[tuple[int, Reach], ...] = ()

    def cycles(
        self,
        kernel: str,
        terms: Terms,
        size_bytes: int,
        of_bytes: int,
        constants_in: str = "",
        code_in: str = "",
    ) -> float:
        """Stall cycles of one run of a kernel. `size_bytes`: its constants; `of_bytes`: all
        constants of the network. `constants_in`: the bank of `copies` that holds them; '': flash.
        `code_in`: the bank that holds its code and never waits; '': flash.
        """
        events = self.kernels.get(kernel)
        if events is None:
            return 0.0
        stall = 0.0 if code_in else self._fetches(events, terms)
        reach = self.copies[constants_in] if constants_in else self._home_of(of_bytes)
        if reach is None:
            return stall
        apart = constant_terms(terms, size_bytes, of_bytes, reach.cache)
        return stall + reach.fill_cycles * sum_over(events.constants, apart)

    @property
    def identity(self) -> Hashable:
        """All that `cycles` reads: how each bank is read (`Reach.identity`), the names of those for
        copies, the bytes that banks for constants hold before others, and the lines that
        each kernel lacks. Where banks lie, and the sizes and names of the rest, do not count.
        """
        reads = [self.code, self.constants, *(reach for _, reach in self.beyond)]
        return (
            tuple(reach.identity for reach in reads),
            tuple(held_bytes for held_bytes, _ in self.beyond),
            frozenset((name, reach and reach.identity) for name, reach in self.copies.items()),
            frozenset((name, events.identity) for name, events in self.kernels.items()),
        )

    def _home_of(self, of_bytes: int) -> Reach:
        """The bank that holds all constants of a network: the first that is large enough."""
        home = self.constants
        for held_bytes, reach in self.beyond:
            if of_bytes <= held_bytes:
                break
            home = reach
        return home

    def _fetches(self, events: Events, terms: Terms) -> float:
        first, whole = self.code.region.timing.read_cycles, self.code.fill_cycles
        alone = first + max(whole - first - events.jump_cycles, 0)
        following = min(alone, max(self.code.busy_cycles - events.sequential_cycles, 0))
        return alone * sum_over(events.jump, terms) + following * sum_over(events.sequential, terms)


def _scaled(each: Terms, by: float) -> Terms:
    return {name: by * count for name, count in each.items()}


def constant_terms(terms: Terms, size_bytes: int, of_bytes: int, cache: Cache) -> Terms:
    """Loop counts as far as constants are fetched again in them, and lines fetched once.

    `of_bytes`: all constants that run between two runs of the kernel; where the cache holds them,
    nothing is fetched.
    """
    few = cache.size_bytes < _HELD_LINES * cache.line_bytes
    if few and not size_bytes:
        return terms  # tables and parameters, which it does not hold for long
    room = cache.size_bytes - _CODE_SHARE_BYTES * ("instructions" in cache.holds)
    again = lacked_share(size_bytes / room, cache)
    once = 1.0 if few else lacked_share(of_bytes / room, cache)
    fetched = {name: again * count for name, count in terms.items() if name != "call"}
    fetched["call"] = once
    fetched[CONSTANT_LINE] = max(once - again, 0.0) * size_bytes / cache.filled_bytes
    return fetched


def lacked_share(share: float, cache: Cache) -> float:
    """The part of the lines that a cache lacks which are read in turn, again and again, and take
    `share` of its size.

    Replacement by age loses all lines of a set that has one too many. At random, a line survives
    until its next turn with the probability exp(-lacked * share), of which this is the fixed point.
    """
    if share <= 1:
        return 0.0
    if cache.replacement != "random":
        return min((share - 1) * (cache.ways + 1) / share, 1.0)
    lacked = 1.0
    for _ in range(50):
        lacked = 1 - math.exp(-lacked * share)
    return lacked


def geometry(code: Cache, constants: Cache) -> str:
    """The name of the file, by caches: bytes that a miss brings in, lines in a set, and sets."""
    words = (
        f"{c.filled_bytes}x{c.line_bytes // c.filled_bytes * c.ways}x{c.sets}"
        for c in dict.fromkeys((code, constants))
    )
    return "-".join(("caches", *words))


def reaches(system: MemorySystem, memories: Sequence[Memory]) -> tuple[Reach, Reach] | None:
    """How code and constants are read from the first banks that hold them; None: both at once."""
    code = _reach(system, _home(memories, Content.CODE), "instructions")
    constants = _reach(system, _home(memories, Content.WEIGHTS), "data")
    if code is None or constants is None or not code.fill_cycles + constants.fill_cycles:
        return None
    return code, constants


def stalls_of(target: Board | Target) -> Stalls | None:
    """The stalls of a board or target; None where its memories of code and constants never wait."""
    system = memory_system(target.memories, target.memories, target.caches)
    first = reaches(system, target.memories) if target.memories else None
    if first is None:
        return None
    code, constants = first
    copies = {
        bank.name: _reach(system, bank.name, "data")
        for bank in target.memories
        if Content.COPIES in bank.holds
    }
    events = _nearest(code.cache, constants.cache)
    beyond = tuple(_beyond(system, target.memories))
    return Stalls(code, constants, events, MappingProxyType(copies), beyond)


def _beyond(system: MemorySystem, memories: Sequence[Memory]) -> Iterator[tuple[int, Reach]]:
    """Each further bank for constants behind a cache of data, with the bytes up to which the bank
    before it holds them."""
    homes = [memory for memory in memories if Content.WEIGHTS in memory.holds]
    for before, memory in pairwise(homes):
        reach = _reach(system, memory.name, "data")
        if reach is not None:
            yield before.size_bytes - _CODE_BYTES * (Content.CODE in before.holds), reach


def _home(memories: Sequence[Memory], content: Content) -> str:
    return next(memory.name for memory in memories if content in memory.holds)


def _reach(system: MemorySystem, name: str, held: Cached) -> Reach | None:
    region = next(region for region in system.regions if region.name == name)
    cache = system.cache_of(name, held)
    return None if cache is None else Reach(region, cache)


def _nearest(code: Cache, constants: Cache) -> Mapping[str, Events]:
    name = geometry(code, constants)
    nearest = nearest_geometry(name)
    if nearest == name:
        return _files()[name]
    lines = [line_bytes for line_bytes, _ in _shape(nearest)]
    code_ratio, ratio = lines[0] / code.filled_bytes, lines[-1] / constants.filled_bytes
    return {
        kernel: events.of_other_lines(code_ratio, ratio)
        for kernel, events in _files()[nearest].items()
    }


def nearest_geometry(name: str) -> str:
    """The fitted geometry that resembles `name` most: as many caches, with lines and sizes that
    differ by the smallest factors.
    """

    def distance(other: str) -> tuple[int, float]:
        wanted, shape = _shape(name), _shape(other)
        pairs = [
            pair
            for one, two in zip(wanted, shape, strict=False)
            for pair in zip(one, two, strict=True)
        ]
        return abs(len(wanted) - len(shape)), sum(abs(math.log2(a / b)) for a, b in pairs)

    return min(_files(), key=distance)


def _shape(name: str) -> list[tuple[int, int]]:
    """Bytes of a line and of the whole cache, for each cache in a geometry's name."""
    sizes = []
    for word in name.split("-")[1:]:
        line, ways, sets = map(int, word.split("x"))
        sizes.append((line, line * ways * sets))
    return sizes


@cache
def _files() -> Mapping[str, Mapping[str, Events]]:
    events = {}
    for file in sorted(COEFFICIENTS.glob("caches-*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        events[file.stem] = {name: Events(**each) for name, each in data["kernels"].items()}
    return MappingProxyType(events)
