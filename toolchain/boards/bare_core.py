"""Cores without a board: generated C depends on the core alone, so that a core with the sizes of
its memories and a clock is a board for all but firmware.

Each file of `boards/cores` is one. `cortex-m4f,ram=256K,flash=1M,clock=64M,waits=2` names it with
values of the user's; those that a name leaves out are assumed, as the file says them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from toolchain.boards.board_model import Board
from toolchain.boards.chip_model import Bank, BusTiming, Chip
from toolchain.boards.entries import CoreEntry
from toolchain.boards.fields import Line
from toolchain.boards.memory import Content, Memory, MemoryKind
from toolchain.boards.places import CORES
from toolchain.errors import InputError, did_you_mean
from toolchain.files.amounts import amount, hertz
from toolchain.files.records import read_toml, record
from toolchain.resources import BOARDS

_VALUES = ("ram", "flash", "clock", "waits")
_ARM = "cortex-"
_FLASH, _RAM = 0x0000_0000, 0x2000_0000
_ROOM = {"flash": _RAM - _FLASH, "ram": 0x4000_0000 - _RAM}
"""Where a Cortex-M has code and SRAM (Arm DDI 0403 B3.1), and the most bytes of each."""
_LEAST_BYTES = 1024
_MOST_WAITS = 64
_LINE_BYTES = 16
"""Bytes that a read of flash is assumed to deliver, as in most chips whose flash waits."""


@dataclass(frozen=True)
class CoreFile:
    """A file of `boards/cores`: what is assumed of a chip with the core, at a usual size.

    `found_in`: beginnings of the names of chips that have it.
    """

    title: Line
    clock_hz: int
    ram_bytes: int
    flash_bytes: int
    core: CoreEntry
    found_in: tuple[Line, ...] = ()


@cache
def core_files() -> Mapping[str, CoreFile]:
    """Every core by its name, in alphabetical order. Raises InputError for an invalid file."""
    return MappingProxyType(
        {file.stem: record(CoreFile, read_toml(file), str(file)) for file in _files()}
    )


def _files() -> list[Path]:
    return sorted((BOARDS / CORES).glob("*.toml"))


@cache
def core_names() -> tuple[str, ...]:
    """The names of the cores; reads no file."""
    return tuple(file.stem for file in _files())


def core_file_of(name: str) -> Path | None:
    """The file of the core that a name means; None for no core."""
    core = _core_of(name.partition(",")[0])
    return None if core is None else BOARDS / CORES / f"{core}.toml"


def core_that_has(chip: str) -> str:
    """The core of a chip without a file here, by the beginning of its name; '' where unknown."""
    meant = chip.lower()
    for name, file in core_files().items():
        if any(meant.startswith(begins.lower()) for begins in file.found_in):
            return name
    return ""


def _core_of(text: str) -> str | None:
    """The core that is meant: `cortex-m4f`, and also `m4f`, `M4F`, `m0+`."""
    plain = text.strip().lower().removeprefix("arm-").replace("+", "plus")
    name = _ARM + plain.removeprefix(_ARM)
    return name if name in core_names() else None


def is_core(name: str) -> bool:
    """Whether a name is that of a core without a board."""
    return core_file_of(name) is not None


def sized_core(core: str, told: Mapping[str, str], otherwise: Mapping[str, str]) -> str:
    """The name of a core with the values `told`, and those of `otherwise` that it does not have.

    Raises InputError as `bare_core`, and for a value that the name has too.
    """
    name, values = _parsed(core)
    for key in told.keys() & values.keys():
        raise InputError(f"{core} says {key}={values[key]}: leave out {key} {told[key]}")
    return _name(name, {**otherwise, **values, **told})


@cache
def bare_core(name: str) -> Board | None:
    """The board of nothing but a core, its memories and a clock; None where the name is no core's.

    Raises InputError for a value that is unknown, of no form, or out of its limits.
    """
    return None if core_file_of(name) is None else _board(*_parsed(name))


def _parsed(name: str) -> tuple[str, dict[str, str]]:
    core, *rest = name.split(",")
    values: dict[str, str] = {}
    for text in rest:
        key, equals, value = text.strip().partition("=")
        if key not in _VALUES or not equals or key in values:
            raise InputError(
                f"{name}: {text!r} is no value of a core; write each once, as "
                f"{core},ram=256K,flash=1M,clock=64M,waits=0{did_you_mean(key, _VALUES)}"
            )
        values[key] = value
    found = _core_of(core)
    assert found is not None
    return found, values


def _name(core: str, values: Mapping[str, str]) -> str:
    numbers = _numbers(core, values)
    told = {
        "ram": _short(numbers["ram"], 1024),
        "flash": _short(numbers["flash"], 1024),
        "clock": _short(numbers["clock"], 1000),
        "waits": str(numbers["waits"]),
    }
    return ",".join([core, *(f"{key}={told[key]}" for key in _VALUES if key in values)])


def _short(number: int, kilo: int) -> str:
    for letter, unit in (("M", kilo**2), ("K", kilo)):
        if number % unit == 0:
            return f"{number // unit}{letter}"
    return str(number)


def _numbers(core: str, values: Mapping[str, str]) -> dict[str, int]:
    """The values as numbers, those of the file where none is given."""
    file = core_files()[core]
    numbers = {
        "ram": file.ram_bytes,
        "flash": file.flash_bytes,
        "clock": file.clock_hz,
        "waits": 0,
    }
    for key, text in values.items():
        where = f"{core}: {key}"
        if key == "waits":
            if not text.isdecimal() or int(text) > _MOST_WAITS:
                raise InputError(f"{where} {text!r}: cycles that flash waits, 0 to {_MOST_WAITS}")
            numbers[key] = int(text)
        elif key == "clock":
            numbers[key] = hertz(text, where)
        else:
            numbers[key] = amount(text, where)
            if not _LEAST_BYTES <= numbers[key] <= _ROOM[key]:
                raise InputError(
                    f"{where} {text}: {_LEAST_BYTES} bytes at least, {_ROOM[key]:,} at most"
                )
    return numbers


def _board(core: str, values: Mapping[str, str]) -> Board:
    file, numbers = core_files()[core], _numbers(core, values)
    waits = numbers["waits"]
    flash = Memory(
        "FLASH",
        _FLASH,
        numbers["flash"],
        MemoryKind.FLASH,
        frozenset({Content.CODE, Content.WEIGHTS}),
    )
    ram = Memory(
        "RAM", _RAM, numbers["ram"], MemoryKind.RAM, frozenset({Content.DATA, Content.ARENA})
    )
    line = BusTiming(_LINE_BYTES, first_clocks=waits, next_clocks=waits, prefetch=True)
    chip = Chip(
        name=core,
        title=file.title,
        core=file.core.core(),
        compiler_flags=file.core.flags,
        most_clock_hz=numbers["clock"],
        banks=(Bank(flash, line), Bank(ram, BusTiming(4))),
    )
    assumed = {
        "ram": f"{numbers['ram'] // 1024} KiB of RAM",
        "flash": f"{numbers['flash'] // 1024} KiB of flash",
        "clock": f"{numbers['clock'] / 1e6:g} MHz",
        "waits": "flash that does not wait",
    }
    return Board(
        name=_name(core, values),
        title=f"{file.title}, a core without a board",
        chip=chip,
        clock_hz=numbers["clock"],
        memories=chip.memories(numbers["clock"], core),
        caches=(),
        uart=None,
        counter=None,
        firmware_sources=(),
        defines={},
        assumed=tuple(text for key, text in assumed.items() if key not in values),
    )
