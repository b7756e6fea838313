"""A board by its name; and the target as which a run can be read: a board, or a bare chip.

`EMULATED:TARGET` names a board of its own: the machine of an emulated board with the memories of
another board or of a chip. A plan or firmware for it takes the banks that it would take on the
target, and runs in QEMU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolchain.boards.bare_core import bare_core, core_file_of, core_names, core_that_has
from toolchain.boards.board_model import Board
from toolchain.boards.chip_model import Energy
from toolchain.boards.core import Core
from toolchain.boards.memory import GUARD_BYTES, Cache, Content, Memory, MemoryKind
from toolchain.boards.parts import chip_of
from toolchain.boards.places import CHIPS, FILE, board_files_by_name, file_of
from toolchain.boards.reading import boards, chip, chips, invalid_boards, package_board, read_board
from toolchain.errors import InputError, did_you_mean
from toolchain.files.records import field_of
from toolchain.resources import BOARDS

_STANDS_FOR = ":"
_WEIGHTS_IN = "@"


@dataclass(frozen=True)
class Target:
    """A board, or a chip at its highest clock. `memories` have their stalls at `clock_hz`."""

    name: str
    core: Core
    clock_hz: int
    memories: tuple[Memory, ...]
    caches: tuple[Cache, ...]


def board(name: str) -> Board:
    """The board that `name` means: a board's name, the path of its folder or file, a chip or a part
    number (a board of nothing but that), a core (`bare_core`), `EMULATED:TARGET`, or any of these
    with `@BANK` behind it, the bank to which all constants go.

    Raises InputError listing the boards if there is none, where its file is invalid, and where the
    machine cannot stand for the target.
    """
    plain = _plain(name)
    if plain is not None:
        return plain
    machine, colon, target = name.partition(_STANDS_FOR)
    if colon and machine in boards():
        return _standing_for(machine, target)
    if core := core_that_has(name):
        raise InputError(
            f"there is no board {name!r} and no file of that chip; its core is a {core}, which is "
            "all that the C depends on",
            remedies=[f"--chip {core} with the --ram, --flash and --clock of your chip"],
        )
    meant = did_you_mean(name, [*boards(), *_bare(), *core_names()])
    listed = f"; the boards are {', '.join(boards())}, the chips {', '.join(_bare())}."
    raise InputError(
        f"there is no board {name!r}{meant or listed} `thimble boards` lists all; a part number "
        f"stands for its chip, and a path for its {FILE}."
    )


def _plain(name: str) -> Board | None:
    """A board that stands for itself; None where there is none. Raises InputError if its file is
    invalid, and as `bare_core`.
    """
    named = package_board(name) or bare_core(name) or boards().get(name)
    if named is not None:
        return named
    plain, at, bank = name.rpartition(_WEIGHTS_IN)
    if at and (named := _plain(plain)) is not None:
        return _with_weights_in(named, bank)
    if name in invalid_boards():
        raise InputError(invalid_boards()[name])
    file = file_of(name)
    if file is not None and file.is_file():
        return read_board(file, str(file.parent if file.name == FILE else file))
    if file is not None and _STANDS_FOR not in name:
        raise InputError(f"there is no {file}; a board is a {FILE}, or a folder with one")
    return bare_chip(name)


def _with_weights_in(target: Board, bank: str) -> Board:
    """The board whose constants lie in that bank only. Raises InputError where none may."""
    able = [m.name for m in target.memories if Content.WEIGHTS in m.holds]
    if bank not in able:
        raise InputError(
            f"board {target.name}{_WEIGHTS_IN}{bank}: weights may lie in {', '.join(able)}"
        )
    memories = tuple(
        m if m.name == bank else replace(m, holds=m.holds - {Content.WEIGHTS})
        for m in target.memories
    )
    return replace(target, name=f"{target.name}{_WEIGHTS_IN}{bank}", memories=memories)


def bare_chip(name: str) -> Board | None:
    """A board of nothing but a chip, by its name or a part number, at its highest clock: what can
    be planned, and made as C, but not as firmware. None where there is no such chip.

    Raises InputError for a part with more flash than its chip.
    """
    if chip_of(name, chips()) is None:
        return None
    part = chip(name)
    if not part.banks:
        return None
    return Board(
        name=name.lower(),
        title=f"{part.title}, a chip without a board",
        chip=part,
        clock_hz=part.most_clock_hz,
        memories=part.memories(part.most_clock_hz, part.name),
        caches=part.caches,
        uart=None,
        counter=part.counter,
        firmware_sources=(),
        defines={},
    )


def _bare() -> list[str]:
    return [chip.name for chip in chips().values() if chip.banks]


def _standing_for(machine: str, target: str) -> Board:
    name = f"{machine}{_STANDS_FOR}{target}"
    emulated, meant = boards()[machine], as_target(target)
    emulator = emulated.emulator
    if emulator is None:
        raise InputError(f"board {name}: {machine} is not emulated, so it stands for itself only")
    alone = bare_core(target)
    if alone is not None and _runs_core(emulated, alone):
        emulated = _with_core(emulated, alone)
    if emulated.core.name != meant.core.name:
        raise InputError(
            f"board {name}: {target} has a {meant.core.name}, and {machine} a {emulated.core.name}"
        )
    moved = _moved(meant.memories, emulated.memories, f"board {name}", alone is not None)
    return replace(
        emulated,
        name=name,
        title=f"{emulated.title}, with the memories of {target}",
        clock_hz=meant.clock_hz,
        memories=moved,
        caches=meant.caches,
        emulator=replace(emulator, stands_for=""),
    )


_ALSO_RUN = {"cortex-m0plus": "cortex-m0", "cortex-m55": "cortex-m85"}
"""Cores that run all instructions that the C for another core becomes."""


def _runs_core(emulated: Board, alone: Board) -> bool:
    return alone.core.name in (emulated.core.name, _ALSO_RUN.get(emulated.core.name))


def _with_core(emulated: Board, alone: Board) -> Board:
    """The machine with that core, for the same C; its own flags where the features are its own."""
    own, core = emulated.core, alone.core
    alike = (own.dsp, own.mve, own.fpu) == (core.dsp, core.mve, core.fpu)
    flags = emulated.compiler_flags if alike else alone.compiler_flags
    return replace(emulated, chip=replace(emulated.chip, core=core, compiler_flags=flags))


def stand_in(target: Board) -> Board | None:
    """The emulated board that stands for one that is not emulated, with its core, memories and
    clock; None where no machine has its core and room for its memories, and for the host.

    The machine with the most RAM goes first.
    """
    if target.emulator is not None or target.is_host:
        return None
    alike = [
        b
        for b in boards().values()
        if b.emulator
        and (_runs_core(b, target) if target.is_core else b.core.name == target.core.name)
    ]
    for machine in sorted(alike, key=lambda one: (-one.ram_bytes, one.name)):
        with contextlib.suppress(InputError):
            return _standing_for(machine.name, target.name)
    return None


def _moved(
    banks: Sequence[Memory], into: Sequence[Memory], where: str, of_core: bool
) -> tuple[Memory, ...]:
    """Banks at addresses of an emulated machine: each in memory of its kind, the first at the
    beginning. Banks that touch still touch, others do not. A bank for weights alone may be larger
    than the machine's memory, and so may the flash of a core without a board (`of_core`): it gets
    what is left. Raises InputError where one has no room.
    """
    free = {room.name: room.origin for room in into}
    origins: dict[str, int] = {}
    sizes: dict[str, int] = {}
    used = [bank for bank in banks if bank.holds]
    for run in _runs(sorted(used, key=lambda bank: (bank.origin != banks[0].origin, bank.origin))):
        size = run[-1].end - run[0].origin
        room = next((r for r in into if _fits(r, run[0], free[r.name] + size)), None)
        nominal = of_core and run[0].kind is MemoryKind.FLASH
        if room is None and (nominal or [bank.holds for bank in run] == [{Content.WEIGHTS}]):
            room = max(
                (r for r in into if r.kind is run[0].kind), key=lambda r: r.end - free[r.name]
            )
            size = sizes[run[0].name] = room.end - free[room.name]
        if room is None or size <= 0:
            raise InputError(
                f"{where}: the machine has no memory for the {size:,} bytes of {run[0].name}"
            )
        shift = free[room.name] - run[0].origin
        origins |= {bank.name: bank.origin + shift for bank in run}
        apart = 2 * GUARD_BYTES - 1
        free[room.name] = (free[room.name] + size + apart) // GUARD_BYTES * GUARD_BYTES
    return tuple(
        replace(
            bank,
            origin=origins[bank.name],
            size_bytes=sizes.get(bank.name, bank.size_bytes),
            code_origin=None if bank.code_origin is None else origins[bank.name],
        )
        for bank in used
    )


def _fits(room: Memory, bank: Memory, end: int) -> bool:
    return room.kind is bank.kind and end <= room.end


def _runs(banks: Sequence[Memory]) -> list[list[Memory]]:
    """Banks of one kind that touch, together."""
    runs: list[list[Memory]] = []
    for bank in banks:
        if runs and runs[-1][-1].end == bank.origin and runs[-1][-1].kind is bank.kind:
            runs[-1].append(bank)
        else:
            runs.append([bank])
    return runs


def board_files(name: str) -> tuple[Path, ...]:
    """The files that a board is read from: every chip's and family's, then its own with the chips
    beside it.
    """
    files = sorted((BOARDS / CHIPS).rglob("*.toml"))
    plain = name.rpartition(_WEIGHTS_IN)[0]
    for part in (name, plain, *name.split(_STANDS_FOR), *plain.split(_STANDS_FOR)):
        file = board_files_by_name().get(part) or file_of(part) or core_file_of(part)
        if file is not None and file.is_file():
            files.append(file)
            if not file.is_relative_to(BOARDS):
                files += sorted((file.parent.parent / CHIPS).rglob("*.toml"))
    return tuple(dict.fromkeys(files))


def as_target(name: str) -> Target:
    """The board that `name` means (as `board`), or the chip at its highest clock.

    Raises InputError listing both if there is none, and for this computer, which has no timing.
    """
    source = board(name) if _STANDS_FOR in name else _plain(name)
    if source is not None and not source.is_host:
        return Target(name, source.core, source.clock_hz, source.memories, source.caches)
    named = [b.name for b in boards().values() if not b.is_host]
    meant = did_you_mean(name, [*named, *_bare(), *core_names()])
    listed = f"; the boards are {', '.join(named)}; the chips are {', '.join(_bare())}."
    raise InputError(
        f"there is no board or chip {name!r} with memories{meant or listed} "
        "`thimble boards` lists all."
    )


def naming(name: str) -> dict[str, Any]:
    """The fields of JSON that say for which board something is: `board`; for a core without one,
    that is null, and `chip`, `core`, `clock_hz` and what was `assumed` follow.
    """
    alone = bare_core(name)
    if alone is None:
        return {"board": name}
    return {
        "board": None,
        "chip": alone.name,
        "core": alone.core.name,
        "clock_hz": alone.clock_hz,
        "assumed": list(alone.assumed or ()),
    }


def named_in(fields: Mapping[str, Any], where: str) -> str:
    """The name that `naming` wrote. Raises InputError where there is none."""
    named = field_of(fields, "board", str | None, where)
    return field_of(fields, "chip", str, where) if named is None else str(named)


def energy_of(name: str) -> Energy | None:
    """Current that the chip of a board, or the chip of that name, draws; None where its file does
    not say."""
    plain = _plain(name if _plain(name) else name.rpartition(_STANDS_FOR)[2])
    return None if plain is None else plain.chip.energy
