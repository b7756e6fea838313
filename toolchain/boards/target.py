"""A board by its name; and what a run can be read as: a board, or a bare chip.

`EMULATED:TARGET` names a board of its own: the machine of an emulated board with the memories of
another board or of a chip. What is planned and built for it takes the banks that it would take on
the target, and runs in QEMU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from toolchain.boards.board_model import Board
from toolchain.boards.chip_model import Energy
from toolchain.boards.core import Core
from toolchain.boards.memory import GUARD_BYTES, Cache, Memory
from toolchain.boards.reading import CHIPS, boards, chips
from toolchain.errors import InputError
from toolchain.resources import BOARDS

_STANDS_FOR = ":"


@dataclass(frozen=True)
class Target:
    """A board, or a chip at its highest clock. `memories` have their stalls at `clock_hz`."""

    name: str
    core: Core
    clock_hz: int
    memories: tuple[Memory, ...]
    caches: tuple[Cache, ...]


def board(name: str) -> Board:
    """The board of that name, or that which `EMULATED:TARGET` describes.

    Raises InputError listing the boards if there is none, and where the machine cannot stand for
    the target.
    """
    found = boards().get(name)
    if found is not None:
        return found
    machine, colon, target = name.partition(_STANDS_FOR)
    if colon and machine in boards():
        return _standing_for(machine, target)
    known = ", ".join(boards())
    raise InputError(f"there is no board {name!r}; the boards are {known}")


@cache
def _standing_for(machine: str, target: str) -> Board:
    name = f"{machine}{_STANDS_FOR}{target}"
    emulated, meant = boards()[machine], as_target(target)
    if emulated.emulator is None:
        raise InputError(f"board {name}: {machine} is not emulated, so it stands for itself only")
    if emulated.core.name != meant.core.name:
        raise InputError(
            f"board {name}: {target} has a {meant.core.name}, and {machine} a {emulated.core.name}"
        )
    moved = _moved(meant.memories, emulated.memories, f"board {name}")
    return replace(
        emulated,
        name=name,
        title=f"{emulated.title}, with the memories of {target}",
        clock_hz=meant.clock_hz,
        memories=moved,
        caches=meant.caches,
        emulator=replace(emulated.emulator, stands_for=""),
    )


def _moved(banks: Sequence[Memory], into: Sequence[Memory], where: str) -> tuple[Memory, ...]:
    """Banks at addresses of an emulated machine: each in memory of its kind, the first at the
    beginning. Banks that touch still touch, others do not. Raises InputError where one has no room.
    """
    free = {room.name: room.origin for room in into}
    origins: dict[str, int] = {}
    used = [bank for bank in banks if bank.holds]
    for run in _runs(sorted(used, key=lambda bank: (bank.origin != banks[0].origin, bank.origin))):
        size = run[-1].end - run[0].origin
        room = next((r for r in into if _fits(r, run[0], free[r.name] + size)), None)
        if room is None:
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
    """The files that a board is read from: every chip's and family's, then its own."""
    own = (BOARDS / part / "board.toml" for part in name.split(_STANDS_FOR))
    return (*sorted((BOARDS / CHIPS).rglob("*.toml")), *(file for file in own if file.is_file()))


def as_target(name: str) -> Target:
    """The board of that name (as `board`), or the chip at its highest clock.

    Raises InputError listing both if there is none, and for this computer, which has no timing.
    """
    found = board(name) if _STANDS_FOR in name else boards().get(name)
    if found is not None and not found.is_host:
        return Target(name, found.core, found.clock_hz, found.memories, found.caches)
    on = chips().get(name)
    if on is not None and on.banks:
        clock_hz = on.most_clock_hz
        return Target(name, on.core, clock_hz, on.memories(clock_hz, name), on.caches)
    known = ", ".join(b.name for b in boards().values() if not b.is_host)
    others = ", ".join(c.name for c in chips().values() if c.banks)
    raise InputError(
        f"there is no board or chip {name!r} with memories; the boards are {known}; the chips are "
        f"{others}"
    )


def energy_of(name: str) -> Energy | None:
    """What the chip of a board, or the chip of that name, draws; None where its file is silent."""
    name = name.rpartition(_STANDS_FOR)[2]
    found = boards().get(name)
    chip = found.chip if found is not None else chips().get(name)
    return None if chip is None else chip.energy
