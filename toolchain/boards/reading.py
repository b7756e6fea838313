"""Reads the files of chips and boards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolchain.boards.baud import check_baud
from toolchain.boards.board_model import Board, Emulator
from toolchain.boards.chip_model import Chip
from toolchain.boards.clock import Clocks, clocks
from toolchain.boards.entries import BoardEntry, ChipEntry, banks_of, check_banks, names_behind
from toolchain.boards.fields import Word
from toolchain.boards.parts import as_part, chip_of
from toolchain.boards.places import CHIPS, FILE, board_files_by_name
from toolchain.boards.soldered import (
    clock_defines,
    external_defines,
    external_of,
    uart_defines,
)
from toolchain.errors import InputError, did_you_mean
from toolchain.files.formats import WRITTEN_BY_HAND, versioned_toml
from toolchain.files.records import field_of, read_toml, record
from toolchain.resources import BOARDS

_MOST_ICOUNT_SHIFT = 10
_FAMILIES = "families"


_Stamps = tuple[tuple[Path, int, int], ...]


def _stamps(file: Path, *folders: Path) -> _Stamps:
    """Times and sizes of a user's file and of the files in `folders`: they tell whether one has
    changed since it was read. Files of this package do not change.
    """
    if file.is_relative_to(BOARDS):
        return ()
    files = [file, *(f for folder in folders for f in sorted(folder.rglob("*.toml")))]
    told = [(f, f.stat()) for f in files if f.is_file()]
    return tuple((f, stat.st_mtime_ns, stat.st_size) for f, stat in told)


def read_chip(file: Path) -> Chip:
    """A chip from its `<name>.toml`, and what the file does not say from its family's.

    Raises InputError if one is invalid.
    """
    return _read_chip(file, _stamps(file, file.parent / _FAMILIES))


@cache
def _read_chip(file: Path, _: _Stamps) -> Chip:
    where = str(file)
    data = versioned_toml(file, WRITTEN_BY_HAND)
    family = field_of(data, "family", Word, where, "")
    if family:
        base = file.parent / _FAMILIES / f"{family}.toml"
        if not base.is_file():
            raise InputError(f"{where}: family: there is no {base}")
        data = over_family(read_toml(base), data)
    data.pop("family", None)
    entry: ChipEntry = record(ChipEntry, data, where)
    if entry.energy:
        entry.energy.check(f"{where}: energy")
    if entry.identity:
        entry.identity.check(f"{where}: identity")
    for name, switch in entry.switches.items():
        switch.check(f"{where}: switches.{name}")
    banks = banks_of(entry, where, entry.cache)
    caches = [
        cache.cache(name, names_behind(name, banks), f"{where}: cache.{name}")
        for name, cache in entry.cache.items()
    ]
    chip = Chip(
        name=file.stem,
        title=entry.title,
        core=entry.core.core(),
        family=family,
        header=entry.header,
        compiler_flags=entry.core.flags,
        most_clock_hz=entry.most_clock_hz,
        banks=banks,
        # A cache without memories is the family's alone, or one of memory beside the chip.
        caches=tuple(c for c in caches if c.memories or entry.cache[c.name].beside),
        identity=entry.identity,
        energy=entry.energy,
        counter=entry.counter.counter(0) if entry.counter else None,
        clock=entry.clock,
        gpio=entry.gpio,
        uarts=MappingProxyType({**entry.uarts_there(where)}),
        switches=MappingProxyType({**entry.switches}),
        firmware_sources=entry.firmware.sources,
        wait_states_define=entry.firmware.wait_states_define,
        needs=MappingProxyType({**entry.firmware.needs}),
        defines=MappingProxyType({**entry.firmware.checked_defines(where)}),
    )
    check_banks(chip.memories(chip.most_clock_hz, where), where)
    return chip


def over_family(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A chip's tables over its family's, key by key; whatever else both have, as `over` has it."""
    merged = {**base, **over}
    for key in base.keys() & over.keys():
        if isinstance(base[key], Mapping) and isinstance(over[key], Mapping):
            merged[key] = over_family(base[key], over[key])
    return merged


def read_board(file: Path, name: str = "") -> Board:
    """A board from its `board.toml`; the folder's name is the board's if `name` is empty. Its chip
    is read from the folder `chips` beside the board's, or else from that of this package. Raises
    InputError if one is invalid.
    """
    return _read_board(file, name, _stamps(file, file.parent.parent / CHIPS))


@cache
def _read_board(file: Path, name: str, _: _Stamps) -> Board:
    where = str(file)
    entry: BoardEntry = record(BoardEntry, versioned_toml(file, WRITTEN_BY_HAND), where)
    on = _find_chip(entry.chip, file.parent.parent / CHIPS, f"{where}: chip: ")
    return _parse(name or file.parent.name, on, entry, where)


def _find_chip(name: str, folder: Path, where: str = "") -> Chip:
    """The chip, or the part of it that a part number means, of a folder or else of this package.

    Raises InputError listing those there are.
    """
    known = BOARDS / CHIPS
    names = {file.stem for at in (folder, known) for file in at.glob("*.toml")}
    stem = chip_of(name, names)
    if stem is None:
        meant = did_you_mean(name, names)
        listed = f"; the chips are {', '.join(sorted(names))}"
        raise InputError(f"{where}there is no chip {name!r}{meant or listed}")
    beside = folder / f"{stem}.toml"
    return as_part(read_chip(beside if beside.is_file() else known / beside.name), name)


def _parse(name: str, on: Chip, entry: BoardEntry, where: str) -> Board:
    entry.usb.check(where)
    shift = _icount_shift(entry.emulator, on, where)
    memories = on.memories(entry.clock_hz, where)
    beside = banks_of(entry, where, [c.name for c in on.caches], [m.name for m in memories])
    soldered = (replace(bank.at(entry.clock_hz, where), beside=True) for bank in beside)
    memories = (*memories, *soldered)
    check_banks(memories, where)
    made = _clocks(on, entry, where)
    defines = _defines(on, entry, made, where)
    if entry.external is not None:
        named = {bank.memory.name: bank for bank in beside}
        defines = {**defines, **external_defines(on, entry.external, named, made, where)}
    if entry.uart is not None:
        check_baud(entry.uart, defines, entry.usb.ids, where)
    return Board(
        name=name,
        title=entry.title,
        chip=on,
        clock_hz=entry.clock_hz,
        memories=memories,
        caches=tuple(
            replace(c, memories=c.memories + names_behind(c.name, beside)) for c in on.caches
        ),
        uart=entry.uart,
        counter=entry.counter.counter(shift) if entry.counter else on.counter,
        firmware_sources=entry.firmware.sources or on.firmware_sources,
        defines=MappingProxyType({key: _define(value) for key, value in defines.items()}),
        emulator=entry.emulator,
        flash_runners=MappingProxyType({k: MappingProxyType(v) for k, v in entry.flash.items()}),
        ran_on_hardware=entry.ran_on_hardware,
        usb_ids=entry.usb.ids,
        clocks_hz=MappingProxyType({"core": made.core_hz, **made.others} if made else {}),
        external=external_of(entry.external, where) if entry.external else None,
    )


def _defines(
    on: Chip, entry: BoardEntry, made: Clocks | None, where: str
) -> Mapping[str, int | str]:
    """Macros for the firmware: those that follow from the chip, the UART and the clocks, and those
    of the board's file. Raises InputError as `uart_defines` and `_clocks` do, where the file sets a
    macro that follows, and where it lacks one that the chip needs.
    """
    given = entry.firmware.checked_defines(where)
    follows: dict[str, int | str] = {}
    if entry.uart is not None:
        follows |= uart_defines(on, entry.uart, where)
    if entry.firmware.sources:
        return {**follows, **given}
    for name, meaning in on.needs.items():
        if name not in given:
            raise InputError(f"{where}: firmware: defines: {name} is missing: {meaning}")
    follows |= _wait_states(on, entry.clock_hz)
    if made is not None and entry.clock is not None:
        follows |= clock_defines(on, entry.clock, made, entry.uart, where)
    twice = sorted(follows.keys() & given.keys())
    if twice:
        raise InputError(
            f"{where}: firmware: defines.{twice[0]} follows from [clock] and [uart] "
            f"({follows[twice[0]]}): leave it out"
        )
    return {**on.defines, **follows, **given}


def _clocks(on: Chip, entry: BoardEntry, where: str) -> Clocks | None:
    """The board's clocks; None where the chip's clock tree is not known, or the board has firmware
    of its own. Raises InputError where a clock leaves the chip's limits, and where `clock_hz` is
    not the clock that the factors make.
    """
    if on.clock is None or entry.firmware.sources:
        return None
    if entry.clock is None:
        raise InputError(f"{where}: there is no [clock]: the factors that make clock_hz")
    made = clocks(on.clock, entry.clock, on.most_clock_hz, where)
    if made.core_hz != entry.clock_hz:
        raise InputError(
            f"{where}: clock_hz is {entry.clock_hz:,}, but the factors of [clock] make "
            f"{made.core_hz:,} Hz of {on.clock.source}'s {on.clock.source_hz:,}"
        )
    return made


def _icount_shift(emulator: Emulator | None, on: Chip, where: str) -> int:
    """The N of `-icount shift=N`. Raises InputError where the emulator's fields are out of their
    limits."""
    if emulator is None:
        return 0
    if not 0 <= emulator.icount_shift <= _MOST_ICOUNT_SHIFT:
        raise InputError(f"{where}: emulator: icount_shift is {emulator.icount_shift}, not 0 to 10")
    if emulator.stands_for:
        place = f"{where}: emulator: stands_for"
        other = _find_chip(emulator.stands_for, BOARDS / CHIPS, f"{place}: ")
        if other.core.name != on.core.name:
            raise InputError(
                f"{place}: {other.name} has a {other.core.name}, and {on.name} a {on.core.name}"
            )
    return emulator.icount_shift


def _wait_states(on: Chip, clock_hz: int) -> dict[str, int]:
    """The define that tells the firmware how long its flash waits."""
    timing = on.banks[0].timing if on.banks else None
    if not on.wait_states_define or timing is None:
        return {}
    return {on.wait_states_define: timing.wait_states(clock_hz, on.name)}


def _define(value: int | str) -> str:
    return f"0x{value:X}u" if isinstance(value, int) else value


@cache
def chips() -> Mapping[str, Chip]:
    """Every chip by name, in alphabetical order."""
    files = sorted((BOARDS / CHIPS).glob("*.toml"))
    return MappingProxyType({file.stem: read_chip(file) for file in files})


def chip(name: str) -> Chip:
    """The chip of that name, or the part of it that a part number means. Raises InputError listing
    the chips if there is none.
    """
    return _find_chip(name, BOARDS / CHIPS)


def package_board(name: str) -> Board | None:
    """A board of this package, which goes before a user's of the same name; None for another. Reads
    no file of the user's."""
    return _package_boards().get(name)


@cache
def _package_boards() -> Mapping[str, Board]:
    files = sorted(BOARDS.glob(f"*/{FILE}"))
    return MappingProxyType({file.parent.name: read_board(file) for file in files})


def boards() -> Mapping[str, Board]:
    """Every board by name, in alphabetical order, but a user's that is invalid (`invalid_boards`).

    Raises InputError if one of this package is.
    """
    return _readable()[0]


def invalid_boards() -> Mapping[str, str]:
    """Errors, by name, of the user's boards that are invalid and so not among `boards`."""
    return _readable()[1]


def _readable() -> tuple[Mapping[str, Board], Mapping[str, str]]:
    files = board_files_by_name()
    stamps = tuple(_stamps(file, file.parent.parent / CHIPS) for file in files.values())
    return _read_all(tuple(files.items()), stamps)


@cache
def _read_all(
    files: tuple[tuple[str, Path], ...], _: tuple[_Stamps, ...]
) -> tuple[Mapping[str, Board], Mapping[str, str]]:
    readable: dict[str, Board] = {}
    wrong: dict[str, str] = {}
    for name, file in files:
        try:
            readable[name] = read_board(file)
        except InputError as error:
            if file.is_relative_to(BOARDS):
                raise
            wrong[name] = str(error)
    return MappingProxyType(readable), MappingProxyType(wrong)
