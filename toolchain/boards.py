"""Boards: one folder each under `boards/`, described by its `board.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolchain.errors import InputError
from toolchain.files.records import field_of, read_toml, record
from toolchain.resources import BOARDS

GUARD_BYTES = 4096
"""Bytes below the stack to which the MPU refuses all access. The stack lies at the bottom of its
bank. A power of two; each bank that may hold data begins at a multiple of it."""


@dataclass(frozen=True)
class Core:
    """What kernels need to know about a processor core.

    `dsp`: Armv7E-M SIMD (SMLAD and similar). `mve`: Helium. `fpu`: single-precision float.
    """

    name: str
    dsp: bool = False
    mve: bool = False
    fpu: bool = False


_MOST_ICOUNT_SHIFT = 10
HOST = Core("host", fpu=True)


class MemoryKind(Enum):
    """RAM or flash."""

    RAM = "ram"
    FLASH = "flash"


class Content(Enum):
    """What a memory may hold. `DATA` is .data, .bss and the stack."""

    CODE = "code"
    WEIGHTS = "weights"
    DATA = "data"
    ARENA = "arena"


@dataclass(frozen=True)
class Memory:
    """A bank. `origin` is its address for the core. Banks are listed best first.

    `access_cycles`: about how many cycles an uncached load takes; used only to compare banks.
    """

    name: str
    origin: int
    size_bytes: int
    kind: MemoryKind
    holds: frozenset[Content]
    access_cycles: int = 1

    @property
    def end(self) -> int:
        return self.origin + self.size_bytes

    def covers(self, other: Memory) -> bool:
        return self.origin <= other.origin and other.end <= self.end


@dataclass(frozen=True)
class Uart:
    """The serial port that the firmware uses; `pins` is empty where there are none (QEMU)."""

    name: str
    baud: int
    pins: str = ""


@dataclass(frozen=True)
class Counter:
    """How inference is counted: `unit` is 'instructions' or 'cycles'.

    `register` is a free-running 32-bit counter; `wide` says that the source can read more bits of
    it. A tick is worth `per_tick` units: 1 on silicon, and tick_ns / 2^icount_shift in QEMU.
    """

    unit: str
    source: str
    register: int
    per_tick: float = 1.0
    counts_down: bool = False
    wide: bool = False

    @property
    def count_bytes(self) -> int:
        """Bytes of RAM for the count of one operator."""
        return 8 if self.wide else 4


@dataclass(frozen=True)
class Emulator:
    """QEMU machine, and the N of `-icount shift=N`: an instruction takes 2^N virtual ns."""

    machine: str
    icount_shift: int


@dataclass(frozen=True)
class Chip:
    """How a chip is identified: DEV_ID in the register DBGMCU_IDCODE.

    `other_ids`: wrong values that some of its revisions have.
    """

    device_id: int
    id_register: int
    other_ids: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Board:
    """All that the toolchain knows about a board; docs/boards.md explains each field of the file.

    `firmware_sources` are below `runtime_c/firmware`. `flash_runners` name classes of
    `device/flash.py`, preferred first, with the options each one needs. `usb_ids` are those of the
    USB serial port on the board, as `vendor:product` in lower case.
    """

    name: str
    title: str
    core: Core
    clock_hz: int
    compiler_flags: tuple[str, ...]
    memories: tuple[Memory, ...]
    uart: Uart | None
    counter: Counter | None
    firmware_sources: tuple[str, ...]
    defines: Mapping[str, str]
    emulator: Emulator | None = None
    flash_runners: Mapping[str, Mapping[str, str]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    ran_on_hardware: bool = False
    chip: Chip | None = None
    usb_ids: tuple[str, ...] = ()

    @property
    def is_host(self) -> bool:
        return not self.memories

    @property
    def ram_bytes(self) -> int:
        """All RAM of the board; 0 for the host, which has no limit."""
        return sum(m.size_bytes for m in self.memories if m.kind is MemoryKind.RAM)

    @property
    def flash_bytes(self) -> int:
        return sum(m.size_bytes for m in self.memories if m.kind is MemoryKind.FLASH)


def _memory(entry: object, where: str) -> Memory:
    read = field_of(entry, "name", str, where)
    memory = record(Memory, entry, f"{where} ({read})")
    if memory.access_cycles < 1 or memory.origin < 0 or memory.size_bytes < 1:
        raise InputError(
            f"{where} ({read}): access_cycles and size_bytes are 1 or more, origin 0 or more"
        )
    if Content.DATA in memory.holds and memory.origin % GUARD_BYTES:
        raise InputError(
            f"{where} ({read}) may hold data but does not begin at a multiple of {GUARD_BYTES}: "
            "the stack's guard would lie elsewhere"
        )
    return memory


@dataclass(frozen=True)
class _CounterEntry:
    """`[counter]` of a board's file."""

    unit: str
    source: str
    register: int
    tick_ns: float | None = None
    counts_down: bool = False
    wide: bool = False

    def counter(self, icount_shift: int) -> Counter:
        per_tick = 1.0 if self.tick_ns is None else self.tick_ns / 2**icount_shift
        return Counter(self.unit, self.source, self.register, per_tick, self.counts_down, self.wide)


_DIVISORS = {1: (16, 0xFFFF), 256: (0x300, 0xFFFFF)}
"""What BRR of a USART (16-fold oversampling) and of an LPUART may hold, by the kernel clocks per
bit that one step is a part of: UART_BRR_MIN to LPUART_BRR_MAX, stm32l4xx_hal_uart.c:200 (a9f8b8a).
"""
_ST_LINK = "0483:37"
_ST_LINK_CLOCK_HZ = 36_000_000
"""Supposed of the UART in an ST-LINK/V2-1, an STM32F103 at 72 MHz: half of the core's clock."""
_MOST_BAUD_ERROR = 0.02
"""A receiver that samples 16 times a bit bears 3 % and more in all, the two oscillators' errors
among them (RM0390 25.4.5, RM0351 36.5.5), of which the internal one of these boards takes 1 %."""


def _baud_error(clock_hz: int, baud: int, steps: int = 1) -> float | None:
    """How far the nearest speed is from `baud`, as a share of it; None where no divisor fits."""
    divisor = (clock_hz * steps + baud // 2) // baud
    low, high = _DIVISORS[steps]
    return abs(clock_hz * steps / divisor / baud - 1) if low <= divisor <= high else None


def _check_baud(
    uart: Uart, defines: Mapping[str, Any], usb_ids: tuple[str, ...], where: str
) -> None:
    """Raises InputError where the board's UART and an ST-LINK's cannot both keep the speed."""
    if uart.baud < 1:
        raise InputError(f"{where}: [uart] baud must be 1 or more, not {uart.baud}")
    place = f"{where}: firmware"
    clock_hz = field_of(defines, "THIMBLE_USART_CLOCK_HZ", int, place, 0)
    steps = field_of(defines, "THIMBLE_USART_BRR_FACTOR", int, place, 1)
    if not clock_hz:
        return
    if clock_hz < 1 or steps not in _DIVISORS:
        raise InputError(
            f"{place}: THIMBLE_USART_CLOCK_HZ is 1 or more and THIMBLE_USART_BRR_FACTOR one of "
            f"{', '.join(map(str, _DIVISORS))}, not {clock_hz} and {steps}"
        )
    own = _baud_error(clock_hz, uart.baud, steps)
    linked = any(usb_id.startswith(_ST_LINK) for usb_id in usb_ids)
    other = _baud_error(_ST_LINK_CLOCK_HZ, uart.baud) if linked else 0.0
    for whose, error in ((f"{uart.name} at {clock_hz:,} Hz", own), ("the ST-LINK's UART", other)):
        if error is None:
            raise InputError(f"{where}: [uart] baud: {whose} has no divisor for {uart.baud:,}")
    if own is not None and other is not None and own + other >= _MOST_BAUD_ERROR:
        raise InputError(
            f"{where}: [uart] baud: {uart.name} at {clock_hz:,} Hz misses {uart.baud:,} by "
            f"{own:.1%}, the adapter by {other:.1%}: together {_MOST_BAUD_ERROR:.0%} or more; "
            "take a lower speed"
        )


@dataclass(frozen=True)
class _CoreEntry:
    """`[core]` of a board's file."""

    name: str
    flags: tuple[str, ...] = ()
    dsp: bool = False
    mve: bool = False
    fpu: bool = False

    def core(self) -> Core:
        return Core(self.name, self.dsp, self.mve, self.fpu)


def _define(value: object, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InputError(f"{where} is {value!r}, not a text or a whole number")
    return f"0x{value:X}u" if isinstance(value, int) else value


def _parse(name: str, data: Mapping[str, Any], where: str) -> Board:
    def section(key: str, kind: Any, default: Any = None) -> Any:
        return field_of(data, key, kind, where, default)

    core: _CoreEntry = field_of(data, "core", _CoreEntry, where)
    firmware = section("firmware", Mapping[str, Any], {})
    emulator: Emulator | None = section("emulator", Emulator)
    shift = emulator.icount_shift if emulator else 0
    if not 0 <= shift <= _MOST_ICOUNT_SHIFT:
        raise InputError(f"{where}: emulator: icount_shift is {shift}, not 0 to 10")
    counter: _CounterEntry | None = section("counter", _CounterEntry)
    flash = section("flash", Mapping[str, Mapping[str, str]], {})
    memories = section("memory", tuple[Any, ...], ())
    defines = field_of(firmware, "defines", Mapping[str, Any], f"{where}: firmware", {})
    usb = section("usb", Mapping[str, Any], {})
    usb_ids = field_of(usb, "ids", tuple[str, ...], f"{where}: usb", ())
    uart: Uart | None = section("uart", Uart)
    if uart is not None:
        _check_baud(uart, defines, usb_ids, where)
    return Board(
        name=name,
        title=field_of(data, "title", str, where),
        core=core.core(),
        clock_hz=section("clock_hz", int, 0),
        compiler_flags=core.flags,
        memories=tuple(_memory(m, f"{where}: memory[{i}]") for i, m in enumerate(memories)),
        uart=uart,
        counter=counter.counter(shift) if counter else None,
        firmware_sources=field_of(firmware, "sources", tuple[str, ...], f"{where}: firmware", ()),
        defines=MappingProxyType(
            {k: _define(v, f"{where}: firmware: defines.{k}") for k, v in defines.items()}
        ),
        emulator=emulator,
        flash_runners=MappingProxyType({k: MappingProxyType(v) for k, v in flash.items()}),
        ran_on_hardware=section("ran_on_hardware", bool, False),
        chip=section("chip", Chip),
        usb_ids=usb_ids,
    )


def read_board(file: Path) -> Board:
    """A board from its `board.toml`; the folder's name is the board's. Raises InputError if
    invalid.
    """
    return _parse(file.parent.name, read_toml(file), str(file))


@cache
def boards() -> Mapping[str, Board]:
    """Every board by name, in alphabetical order."""
    files = sorted(BOARDS.glob("*/board.toml"))
    return MappingProxyType({file.parent.name: read_board(file) for file in files})


def board(name: str) -> Board:
    """The board of that name. Raises InputError listing the boards if there is none."""
    try:
        return boards()[name]
    except KeyError:
        known = ", ".join(boards())
        raise InputError(f"there is no board {name!r}; the boards are {known}") from None
