"""A commented `board.toml` for a chip, to begin a board of one's own with."""

from __future__ import annotations

import re

from toolchain.boards.chip_model import Chip
from toolchain.boards.clock import clocks, fastest
from toolchain.boards.reading import chip as find_chip
from toolchain.boards.reading import chips
from toolchain.errors import InputError
from toolchain.files.templates import rendered

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_PREFERRED = ("USART2", "USART1", "USART3", "LPUART1")


def starting_board(name: str, chip: str) -> str:
    """The text of a `board.toml` for a chip or part number, at the chip's highest clock.

    Raises InputError for a name that is no folder's in lower case, for a chip that is not known,
    and for one that no firmware is there for.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} names no board: small letters, digits, - and _, a letter or digit first"
        )
    on = _with_firmware(chip)
    assert on.clock is not None
    factors = fastest(on.clock, on.most_clock_hz, on.name)
    uart = next((uart for uart in _PREFERRED if uart in on.uarts), next(iter(on.uarts)))
    return rendered(
        "boards/board.toml.j2",
        name=name,
        part=chip.lower(),
        chip=on,
        factors=factors,
        clocks=clocks(on.clock, factors, on.most_clock_hz, on.name),
        uart=uart,
        family=on.family,
    )


def _with_firmware(name: str) -> Chip:
    known = [c.name for c in chips().values() if c.clock is not None and c.firmware_sources]
    on = find_chip(name)
    if on.name not in known:
        raise InputError(
            f"{on.name} has no firmware here, so nothing would set a board's clocks",
            remedies=[
                f"--chip {on.name} with plan, and with compile --library",
                f"another chip: {', '.join(known)}",
            ],
        )
    return on
