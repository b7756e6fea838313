"""The registers that the STM32 start-up writes whole: written_whole.csv, kept by
scripts/reset_values.py."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.registers import registers
from toolchain.boards import Board, boards
from toolchain.resources import RUNTIME_C

FILE = Path(__file__).parent / "firmware" / "written_whole.csv"
_COLUMNS = ("source", "register", "reset", "boards", "cleared", "reason")
_ASSIGNED = re.compile(r"THIMBLE_REGISTER(?:_BYTE)?\((?:AT\()?(\w+)\)+\s*=[^=]")
_OTHER_NAMES = {"INTERRUPTS": ("RCC_CIR", "RCC_CIER")}
"""Macros of the sources, and the registers that they stand for."""
_CONTROLLERS = ("", "OCTOSPI2_", "XSPI2_")
"""What `AT` of macronix_octal.c puts before a name."""


@dataclass(frozen=True)
class Row:
    """`cleared`: bits of the reset value that the start-up may clear, and `reason` why."""

    source: str
    register: str
    reset: int
    boards: tuple[str, ...]
    cleared: int
    reason: str


def rows() -> list[Row]:
    if not FILE.exists():
        return []
    text = FILE.read_text(encoding="utf-8").splitlines()
    return [
        Row(
            row["source"],
            row["register"],
            int(row["reset"], 16),
            tuple(row["boards"].split()),
            int(row["cleared"], 16),
            row["reason"],
        )
        for row in csv.DictReader(line for line in text if not line.startswith("#"))
    ]


def write(lines: Sequence[Row], revisions: str) -> None:
    held = io.StringIO()
    held.write(f"# reset values of ST's descriptions in {revisions}\n")
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in lines:
        masks = f"{row.reset:08X}", " ".join(row.boards), f"{row.cleared:08X}"
        writer.writerow((row.source, row.register, *masks, row.reason))
    FILE.write_text(held.getvalue(), encoding="utf-8")


def silicon() -> list[Board]:
    """The boards with a chip of ST's."""
    return [board for board in boards().values() if board.flash_runners]


def assigned(target: Board) -> Iterator[tuple[str, str]]:
    """Source and register of each assignment to a whole register in the start-up of a board."""
    known = registers(target.name).addresses
    sources = [*target.firmware_sources]
    if target.external is not None:
        sources += target.external.sources
    for source in sources:
        text = (RUNTIME_C / "firmware" / source).read_text(encoding="utf-8")
        for macro in sorted(set(_ASSIGNED.findall(text))):
            names = [c + n for n in _OTHER_NAMES.get(macro, (macro,)) for c in _CONTROLLERS]
            yield from ((Path(source).name, name) for name in names if name in known)
