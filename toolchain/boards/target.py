"""What a run can be read as: the core, clock, memories and caches of a board or of a bare chip."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.boards.chip_model import Energy
from toolchain.boards.core import Core
from toolchain.boards.memory import Cache, Memory
from toolchain.boards.reading import boards, chips
from toolchain.errors import InputError


@dataclass(frozen=True)
class Target:
    """A board, or a chip at its highest clock. `memories` have their stalls at `clock_hz`."""

    name: str
    core: Core
    clock_hz: int
    memories: tuple[Memory, ...]
    caches: tuple[Cache, ...]


def as_target(name: str) -> Target:
    """The board of that name, or the chip at its highest clock.

    Raises InputError listing both if there is none, and for this computer, which has no timing.
    """
    found = boards().get(name)
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
    found = boards().get(name)
    chip = found.chip if found is not None else chips().get(name)
    return None if chip is None else chip.energy
