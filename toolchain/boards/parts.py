"""Part numbers as ST prints them: which chip's file they mean, and how much flash."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from toolchain.boards.chip_model import Chip
from toolchain.boards.memory import MemoryKind
from toolchain.errors import InputError

_REST = re.compile(r"[a-z](?P<flash>[a-z0-9])[a-z0-9]*")
_LONGER = "stm32wba"
FLASH_KIB = dict(
    zip(
        "468bzcdefghij",
        (16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096),
        strict=True,
    )
)
"""Flash by the letter of a part number behind that of its pins ("Ordering information" of ST's
datasheets)."""


def line_of(part: str) -> str:
    """The part of a chip's name or part number before the letter of its pins: stm32wba55."""
    return part[: len("stm32wba55" if part.startswith(_LONGER) else "stm32u575")]


def chip_of(part: str, names: Collection[str]) -> str | None:
    """The one of `names` that a chip's name or part number means, in any case; None for neither.

    The chip is the one whose name is the longest beginning of the part number; an `x` of a name,
    behind the part's line, stands for the letter of the pins: STM32F103RB is a stm32f103xb.
    """
    text = part.lower()
    longest = max((name for name in names if _begins(text, name)), key=len, default=None)
    whole = text == longest or _REST.fullmatch(text[len(line_of(text)) :])
    return longest if whole else None


def _begins(text: str, name: str) -> bool:
    return len(text) >= len(name) and all(
        wanted == got or (wanted == "x" and place >= len(line_of(text)))
        for place, (got, wanted) in enumerate(zip(text, name, strict=False))
    )


def as_part(chip: Chip, part: str) -> Chip:
    """The chip with the flash that the part number's letter tells, where its name does not.

    Raises InputError for a part with more flash than its chip.
    """
    match = _REST.fullmatch(part.lower()[len(line_of(part.lower())) :])
    first = chip.banks[0] if chip.banks else None
    if match is None or part.lower() == chip.name or first is None:
        return chip
    size_bytes = FLASH_KIB.get(match["flash"], 0) * 1024
    whole = _flash_bytes(chip)
    if first.memory.kind is not MemoryKind.FLASH or size_bytes in (0, whole):
        return chip
    if size_bytes > whole:
        raise InputError(
            f"{part} has {size_bytes // 1024} KiB of flash by its letter, and the file of "
            f"{chip.name} {whole // 1024} KiB"
        )
    if size_bytes > first.memory.size_bytes:  # more than is left of the chip's for firmware
        return chip
    smaller = replace(first, memory=replace(first.memory, size_bytes=size_bytes))
    return replace(chip, banks=(smaller, *chip.banks[1:]))


def _flash_bytes(chip: Chip) -> int:
    """The flash from the chip's first bank on, with banks that touch and are not for firmware."""
    end = start = chip.banks[0].memory.origin
    for bank in chip.banks:
        if bank.memory.kind is MemoryKind.FLASH and bank.memory.origin == end:
            end = bank.memory.end
    return end - start
