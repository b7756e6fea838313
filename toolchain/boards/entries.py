"""The tables of a chip's and a board's file as values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

from toolchain.boards.board_model import Emulator, Uart
from toolchain.boards.chip_model import (
    Bank,
    BusTiming,
    ChipUart,
    Counter,
    Energy,
    Gpio,
    Identity,
    Switch,
    check_power_of_two,
)
from toolchain.boards.clock import ClockTree, Factors
from toolchain.boards.core import Core
from toolchain.boards.fields import Flag, Line, Macro, MacroValue, Name, Source, ToolText, Word
from toolchain.boards.memory import (
    GUARD_BYTES,
    Cache,
    Cached,
    Content,
    Memory,
    MemoryKind,
    Replacement,
)
from toolchain.errors import InputError
from toolchain.files.records import decode, field_of, record

_USB_ID = re.compile("[0-9a-f]{4}:[0-9a-f]{4}")
_LEAST_SECTOR_BYTES = 4
_MOST_SECTORS = 32
_NO_MEMORY = (range(0x4000_0000, 0x6000_0000), range(0xE000_0000, 1 << 32))
"""Peripherals, and the core's own (Arm DDI 0403 B3.1)."""


@dataclass(frozen=True)
class CoreEntry:
    """`[core]`."""

    name: Word
    flags: tuple[Flag, ...] = ()
    dsp: bool = False
    mve: bool = False
    fpu: bool = False

    def core(self) -> Core:
        return Core(self.name, self.dsp, self.mve, self.fpu)


@dataclass(frozen=True)
class CounterEntry:
    """`[counter]`."""

    unit: Literal["instructions", "cycles"]
    source: Source
    register: int
    tick_ns: float | None = None
    counts_down: bool = False
    wide: bool = False

    def counter(self, icount_shift: int) -> Counter:
        per_tick = 1.0 if self.tick_ns is None else self.tick_ns / 2**icount_shift
        return Counter(self.unit, self.source, self.register, per_tick, self.counts_down, self.wide)


@dataclass(frozen=True)
class MemoryEntry:
    """`[[memory]]`: `timing` names a `[timing.NAME]`, `caches` each a `[cache.NAME]`."""

    name: Name
    origin: int
    size_bytes: int
    kind: MemoryKind
    holds: frozenset[Content]
    access_cycles: int = 1
    code_origin: int | None = None
    timing: Name = ""
    caches: tuple[Name, ...] = ()

    def memory(self, where: str) -> Memory:
        """The memory. Raises InputError naming the field that is out of its limits."""
        if self.access_cycles < 1 or self.origin < 0 or self.size_bytes < 1:
            raise InputError(
                f"{where}: access_cycles and size_bytes are 1 or more, origin 0 or more"
            )
        if Content.DATA in self.holds and self.origin % GUARD_BYTES:
            raise InputError(
                f"{where} may hold data but does not begin at a multiple of {GUARD_BYTES}: "
                "the stack's guard would lie elsewhere"
            )
        return Memory(
            self.name,
            self.origin,
            self.size_bytes,
            self.kind,
            self.holds,
            self.access_cycles,
            code_origin=self.code_origin,
        )


@dataclass(frozen=True)
class CacheEntry:
    """`[cache.NAME]`; the banks behind it name it. `beside`: only memory beside the chip does."""

    holds: frozenset[Cached]
    line_bytes: int
    ways: int
    sets: int
    replacement: Replacement = "lru"
    write_back: bool = False
    sector_bytes: int = 0
    beside: bool = False

    def cache(self, name: str, memories: tuple[str, ...], where: str) -> Cache:
        """The cache. Raises InputError naming the field that is out of its limits."""
        check_power_of_two("line_bytes", self.line_bytes, where)
        check_power_of_two("sets", self.sets, where)
        if self.sector_bytes:
            check_power_of_two("sector_bytes", self.sector_bytes, where)
        filled_bytes = self.sector_bytes or self.line_bytes
        sectors = self.line_bytes // filled_bytes
        if filled_bytes < _LEAST_SECTOR_BYTES or not 1 <= sectors <= _MOST_SECTORS:
            raise InputError(
                f"{where}: line_bytes is {self.line_bytes} and a miss brings in {filled_bytes}; a "
                f"line has at most {_MOST_SECTORS} sectors of {_LEAST_SECTOR_BYTES} bytes or more"
            )
        if self.ways < 1 or not self.holds:
            raise InputError(
                f"{where}: ways is {self.ways} and holds {sorted(self.holds)}; it has 1 way or "
                "more and holds instructions, data or both"
            )
        return Cache(
            name,
            self.holds,
            memories,
            self.line_bytes,
            self.ways,
            self.sets,
            self.replacement,
            self.write_back,
            self.sector_bytes,
        )


@dataclass(frozen=True)
class FirmwareEntry:
    """`[firmware]`; a board's has no `wait_states_define` and no `needs`."""

    sources: tuple[Source, ...] = ()
    wait_states_define: Macro = ""
    needs: Mapping[Macro, Line] = field(default_factory=dict)
    defines: Mapping[Macro, Any] = field(default_factory=dict)

    def checked_defines(self, where: str) -> Mapping[str, int | str]:
        """Names in C and whole numbers. Raises InputError naming what is neither."""
        for name, value in self.defines.items():
            place = f"{where}: firmware: defines.{name}"
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise InputError(f"{place} is {value!r}, not a text or a whole number")
            decode(int if isinstance(value, int) else MacroValue, value, place)
        return self.defines


@dataclass(frozen=True)
class ChipEntry:
    """A chip's file, with the tables of its family's; `without`: UARTs among them that the chip
    lacks.
    """

    title: Line
    core: CoreEntry
    header: Word = ""
    most_clock_hz: int = 0
    memory: tuple[Any, ...] = ()
    timing: Mapping[Name, BusTiming] = field(default_factory=dict)
    cache: Mapping[Name, CacheEntry] = field(default_factory=dict)
    identity: Identity | None = None
    counter: CounterEntry | None = None
    energy: Energy | None = None
    clock: ClockTree | None = None
    gpio: Gpio | None = None
    uarts: Mapping[Name, ChipUart] = field(default_factory=dict)
    without: tuple[Name, ...] = ()
    switches: Mapping[Name, Switch] = field(default_factory=dict)
    firmware: FirmwareEntry = FirmwareEntry()

    def uarts_there(self, where: str) -> Mapping[str, ChipUart]:
        """The chip's UARTs, by name. Raises InputError where `without` names one that is not
        listed."""
        for name in self.without:
            _find("without", name, self.uarts, where)
        return {name: uart for name, uart in self.uarts.items() if name not in self.without}


@dataclass(frozen=True)
class ExternalEntry:
    """`[external]` of a board: how the memory beside the chip is made readable.

    `bank`: the `[[memory]]` that it is for. `sources`: the C that does it, below
    runtime_c/firmware. `clock`: the bus whose clock the controller divides by `divider` for the
    memory. `pins`: the pin of each signal with its alternate function, as "PB2 9".
    """

    bank: Name
    sources: tuple[Source, ...]
    clock: Name
    divider: int
    pins: Mapping[Name, Line]


@dataclass(frozen=True)
class UsbEntry:
    """`[usb]`."""

    ids: tuple[Line, ...] = ()

    def check(self, where: str) -> None:
        """Check the identities. Raises InputError naming one that is no vendor and product."""
        for usb_id in self.ids:
            if not _USB_ID.fullmatch(usb_id):
                raise InputError(
                    f"{where}: usb: ids has {usb_id!r}; an id is vendor:product, as 0483:374b"
                )


@dataclass(frozen=True)
class BoardEntry:
    """A board's file. `memory` and `timing` are those beside the chip."""

    title: Line
    chip: Word
    clock_hz: int = 0
    memory: tuple[Any, ...] = ()
    timing: Mapping[Name, BusTiming] = field(default_factory=dict)
    clock: Factors | None = None
    uart: Uart | None = None
    firmware: FirmwareEntry = FirmwareEntry()
    external: ExternalEntry | None = None
    counter: CounterEntry | None = None
    emulator: Emulator | None = None
    flash: Mapping[Word, Mapping[Name, ToolText]] = field(default_factory=dict)
    usb: UsbEntry = UsbEntry()
    ran_on_hardware: bool = False


def banks_of(
    entry: ChipEntry | BoardEntry,
    where: str,
    caches: Collection[str],
    others: Collection[str] = (),
) -> tuple[Bank, ...]:
    """The memories of a file with their timing, beside banks that are called `others`.

    Raises InputError naming a wrong field, and a bank that is there twice.
    """
    for name, timing in entry.timing.items():
        timing.check(f"{where}: timing.{name}")
    banks: dict[str, Bank] = {}
    for number, item in enumerate(entry.memory):
        place = f"{where}: memory[{number}]"
        place = f"{place} ({field_of(item, 'name', str, place)})"
        read = record(MemoryEntry, item, place)
        memory = read.memory(place)
        if read.name in banks or read.name in others:
            raise InputError(f"{place}: there is another bank of that name")
        for cache in read.caches:
            _find("caches", cache, caches, place)
        if read.timing:
            _find("timing", read.timing, entry.timing, place)
        banks[read.name] = Bank(memory, entry.timing.get(read.timing), read.caches, read.timing)
    return tuple(banks.values())


def check_banks(memories: Sequence[Memory], where: str) -> None:
    """Check the banks of a board. Raises InputError where two overlap, where one lies where a
    Cortex-M has no memory, and where the first, which the core boots from, may not hold code.
    """
    for memory in memories:
        at = f"{where}: memory ({memory.name}): origin 0x{memory.origin:08X}"
        if memory.end > 1 << 32 or any(
            memory.origin < none.stop and none.start < memory.end for none in _NO_MEMORY
        ):
            raise InputError(
                f"{at} and size_bytes 0x{memory.size_bytes:X}: a core has no memory from "
                "0x40000000 to 0x5FFFFFFF, from 0xE0000000, and above 4 GB"
            )
    for first, second in combinations(sorted(memories, key=lambda m: m.origin), 2):
        if first.end > second.origin:
            raise InputError(
                f"{where}: memory ({first.name}): size_bytes 0x{first.size_bytes:X} reaches into "
                f"{second.name}, whose origin is 0x{second.origin:08X}"
            )
    if memories and Content.CODE not in memories[0].holds:
        raise InputError(
            f"{where}: memory[0] ({memories[0].name}): the first bank is the one that the core "
            "boots from, so holds must have code"
        )


def _find(field: str, name: str, known: Collection[str], where: str) -> None:
    if name not in known:
        names = ", ".join(known) or "none"
        raise InputError(f"{where}: {field}: there is no {name!r}; there are {names}")


def names_behind(cache: str, banks: Iterable[Bank]) -> tuple[str, ...]:
    """The names of the banks that lie behind a cache."""
    return tuple(bank.memory.name for bank in banks if cache in bank.caches)
