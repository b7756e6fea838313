"""Boards: one folder each under `boards/`, described by its `board.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolchain.errors import InputError
from toolchain.resources import BOARDS


@dataclass(frozen=True)
class Core:
    """What kernels need to know of a processor core.

    `dsp`: Armv7E-M SIMD (SMLAD and friends); `mve`: Helium; `fpu`: single-precision float.
    """

    name: str
    dsp: bool = False
    mve: bool = False
    fpu: bool = False


HOST = Core("host", fpu=True)


class MemoryKind(Enum):
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
    """A bank: `origin` as the core addresses it. Banks are listed best first.

    `access_cycles`: about what a load takes that no cache serves; only to tell banks apart.
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
    """The serial port the firmware talks on; `pins` is empty where there are none (QEMU)."""

    name: str
    baud: int
    pins: str = ""


@dataclass(frozen=True)
class Counter:
    """How inference is counted: `unit` is 'instructions' or 'cycles'.

    `register` is a free-running 32-bit counter, or where it is `wide` the source knows more bits
    of it. A tick is worth `per_tick` units: 1 on silicon; in QEMU tick_ns / 2^icount_shift.
    """

    unit: str
    source: str
    register: int
    per_tick: float = 1.0
    counts_down: bool = False
    wide: bool = False

    @property
    def count_bytes(self) -> int:
        """Of RAM, for the count of an operator."""
        return 8 if self.wide else 4


@dataclass(frozen=True)
class Emulator:
    """QEMU machine, and the N of `-icount shift=N`: an instruction takes 2^N virtual ns."""

    machine: str
    icount_shift: int


@dataclass(frozen=True)
class Chip:
    """How a chip is told from others: DEV_ID in the register DBGMCU_IDCODE."""

    device_id: int
    id_register: int


@dataclass(frozen=True, eq=False)
class Board:
    """All that the toolchain knows of a board; see docs/boards.md for each field of the file.

    `firmware_sources` are below `runtime_c/firmware`; `flash_runners` name classes of
    `device/flash.py`, preferred first, with the options each one needs. `usb_ids` are those of
    the USB serial port on the board, as `vendor:product` in lower case.
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


def _memory(entry: Mapping[str, Any]) -> Memory:
    cycles = entry.get("access_cycles", 1)
    if not isinstance(cycles, int) or cycles < 1:
        raise ValueError(f"access_cycles of {entry['name']} must be a whole number, 1 or more")
    return Memory(
        name=entry["name"],
        origin=entry["origin"],
        size_bytes=entry["size_bytes"],
        kind=MemoryKind(entry["kind"]),
        holds=frozenset(Content(what) for what in entry["holds"]),
        access_cycles=cycles,
    )


def _define(value: object) -> str:
    return f"0x{value:X}u" if isinstance(value, int) else str(value)


def _counter(entry: Mapping[str, Any], icount_shift: int) -> Counter:
    tick_ns = entry.get("tick_ns")
    return Counter(
        unit=entry["unit"],
        source=entry["source"],
        register=entry["register"],
        per_tick=1.0 if tick_ns is None else tick_ns / 2**icount_shift,
        counts_down=entry.get("counts_down", False),
        wide=entry.get("wide", False),
    )


def _parse(name: str, data: Mapping[str, Any]) -> Board:
    core = dict(data["core"])
    flags = tuple(core.pop("flags", ()))
    firmware = data.get("firmware", {})
    emulator = Emulator(**data["emulator"]) if "emulator" in data else None
    shift = emulator.icount_shift if emulator else 0
    flash = {runner: MappingProxyType(dict(v)) for runner, v in data.get("flash", {}).items()}
    return Board(
        name=name,
        title=data["title"],
        core=Core(**core),
        clock_hz=data.get("clock_hz", 0),
        compiler_flags=flags,
        memories=tuple(_memory(entry) for entry in data.get("memory", ())),
        uart=Uart(**data["uart"]) if "uart" in data else None,
        counter=_counter(data["counter"], shift) if "counter" in data else None,
        firmware_sources=tuple(firmware.get("sources", ())),
        defines=MappingProxyType({k: _define(v) for k, v in firmware.get("defines", {}).items()}),
        emulator=emulator,
        flash_runners=MappingProxyType(flash),
        ran_on_hardware=data.get("ran_on_hardware", False),
        chip=Chip(**data["chip"]) if "chip" in data else None,
        usb_ids=tuple(data.get("usb", {}).get("ids", ())),
    )


def read_board(file: Path) -> Board:
    """A board from its `board.toml`; the folder is its name. Raises InputError if it is wrong."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        return _parse(file.parent.name, data)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{file}: {error}") from error
    except KeyError as error:
        raise InputError(f"{file}: the field {error} is missing") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{file}: {error}") from error


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
