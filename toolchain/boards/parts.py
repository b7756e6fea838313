"""A chip without a board: by the name of its file, or by a part number as ST prints it."""

from __future__ import annotations

import re
from dataclasses import replace

from toolchain.boards.board_model import Board
from toolchain.boards.chip_model import Chip
from toolchain.boards.memory import Memory, MemoryKind
from toolchain.boards.reading import chips
from toolchain.errors import InputError

_REST = re.compile(r"[a-z](?P<flash>[a-z0-9])[a-z0-9]*")
_LINE_LENGTH = len("stm32u575")
FLASH_KIB = {
    "4": 16,
    "6": 32,
    "8": 64,
    "b": 128,
    "z": 192,
    "c": 256,
    "d": 384,
    "e": 512,
    "f": 768,
    "g": 1024,
    "h": 1536,
    "i": 2048,
    "j": 4096,
}
"""Flash by the letter of a part number behind that of its pins ("Ordering information" of ST's
datasheets)."""


def bare_chip(name: str) -> Board | None:
    """A board of nothing but the chip, at its highest clock: what can be planned, and made as C,
    but not as firmware. `name` is a chip's (`stm32u575`), or a part number that begins with one
    and then has the letters of pins and flash (`STM32U575ZIT6Q`, 2 MiB), in any case.

    None where there is no such chip. Raises InputError for a part with more flash than its chip.
    """
    text = name.lower()
    found = _longest(text)
    if found is None or not found.banks:
        return None
    memories = found.memories(found.most_clock_hz, found.name)
    if text != found.name:
        match = _REST.fullmatch(text[_LINE_LENGTH:])
        if match is None:
            return None
        memories = _with_flash(memories, FLASH_KIB.get(match["flash"], 0) * 1024, name)
    return Board(
        name=text,
        title=f"{found.title}, a chip without a board",
        chip=found,
        clock_hz=found.most_clock_hz,
        memories=memories,
        caches=found.caches,
        uart=None,
        counter=found.counter,
        firmware_sources=(),
        defines={},
    )


def _longest(text: str) -> Chip | None:
    """The chip whose name is the longest beginning of `text`; an `x` of a name, behind the part's
    line, stands for any letter."""
    found = [chip for chip in chips().values() if _begins(text, chip.name)]
    return max(found, key=lambda chip: len(chip.name), default=None)


def _begins(text: str, name: str) -> bool:
    return len(text) >= len(name) and all(
        wanted in (got, "x") for got, wanted in zip(text, name, strict=False)
    )


def _with_flash(memories: tuple[Memory, ...], size_bytes: int, name: str) -> tuple[Memory, ...]:
    """The flash that the chip boots from, with the part's size; 0: a letter that is not known."""
    first = memories[0]
    if first.kind is not MemoryKind.FLASH or size_bytes == 0 or size_bytes == first.size_bytes:
        return memories
    if size_bytes > first.size_bytes:
        raise InputError(
            f"{name} has {size_bytes // 1024} KiB of flash by its letter, and the chip's file "
            f"{first.size_bytes // 1024} KiB"
        )
    return (replace(first, size_bytes=size_bytes), *memories[1:])
