"""The words that a start-up left in RAM for a debug probe: `thimble_fault` of runtime_c/firmware.

No wait of the start-up is endless. A flag that does not come leaves its register, its bits and what
was read; the board then stays silent, and only a probe tells why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.boards import Board
from toolchain.packages import lazy
from toolchain.resources import RUNTIME_C

if TYPE_CHECKING:
    from elftools.elf import elffile, sections
else:
    elffile, sections = lazy("elftools.elf.elffile"), lazy("elftools.elf.sections")

SYMBOL = "thimble_fault"
WORDS = 5
_WAITS = 0x57A27002
_FOLDER = RUNTIME_C / "firmware"
_INCLUDED = re.compile(r'#include "(registers_\w+\.h)"')
_ADDRESS = re.compile(r"^#define (\w+) (0x[0-9A-Fa-f]{8})u$", re.MULTILINE)
_FIELD = re.compile(
    r"^#define (\w+) \(?(0x[0-9A-Fa-f]+|\d+)u(?: << (\d+))?\)?(?= |$)", re.MULTILINE
)
_REMEDIES = (
    (
        r"^(QUADSPI|OCTOSPI\d|XSPI\d)_",
        "the memory beside the chip does not answer: is it there, and has it a supply?",
    ),
    (
        r"^PWR_",
        "the supply is not as the board's file says (THIMBLE_PWR_SUPPLY, THIMBLE_SMPS): compare it "
        "with the board's manual, and take the power away before you try again",
    ),
    (r"PLL\w*RDY|_SWS?\b|_SWS", "the PLL does not run: compare the chip with the board's file"),
    (r"RDY", "an oscillator or a regulator does not start: is the board's power good?"),
)


@dataclass(frozen=True)
class StartRecord:
    """The words at `SYMBOL`: what was waited for, and what its register held."""

    magic: int
    address: int
    mask: int
    value: int
    held: int


def record_address(elf: Path) -> int | None:
    """Where a firmware's record lies; None where it has none, as in QEMU."""
    with elf.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
        symbols = elffile.ELFFile(file).get_section_by_name(".symtab")
        if not isinstance(symbols, sections.SymbolTableSection):
            return None
        found = symbols.get_symbol_by_name(SYMBOL)
    return int(found[0]["st_value"]) if found else None


def complaint(words: Sequence[int], board: Board) -> str:
    """The fault of a board whose record holds `words`, as a sentence; '' where it started, or
    where the words are none of a record."""
    if len(words) < WORDS or words[0] != _WAITS:
        return ""
    record = StartRecord(*words[:WORDS])
    name = waited_for(record, board)
    why = next((text for words_of, text in _REMEDIES if re.search(words_of, name)), "")
    held = f"held 0x{record.held:08x}, and bits 0x{record.mask:x} were to be 0x{record.value:x}"
    return f"the start-up waited in vain for {name} ({held}){': ' + why if why else ''}"


def waited_for(record: StartRecord, board: Board) -> str:
    """The register and its bits by ST's names, or their numbers."""
    texts = list(_headers(board))
    names = [
        n for text in texts for n, at in _ADDRESS.findall(text) if int(at, 16) == record.address
    ]
    if not names:
        return f"bits 0x{record.mask:x} of the register at 0x{record.address:08x}"
    register = min(names, key=len)
    fields = {
        name.removeprefix(f"{register}_")
        for text in texts
        for name, number, shift in _FIELD.findall(text)
        if name.startswith(f"{register}_") and int(number, 0) << int(shift or 0) == record.mask
    }
    return f"{register}_{min(fields, key=len)}" if fields else f"{register} & 0x{record.mask:x}"


def registers_of(board: Board) -> dict[str, int]:
    """Registers of the chip that the board's start-up knows, by ST's names, with their addresses.

    A name that has other addresses on other chips of its family is left out.
    """
    found: dict[str, set[int]] = {}
    for text in _headers(board):
        for name, address in _ADDRESS.findall(text):
            found.setdefault(name, set()).add(int(address, 16))
    return {name: min(places) for name, places in found.items() if len(places) == 1}


def _headers(board: Board) -> Iterator[str]:
    """The tables of registers that the board's start-up includes."""
    sources = [*board.firmware_sources, *(board.external.sources if board.external else ())]
    included = {
        header
        for source in sources
        for header in _INCLUDED.findall((_FOLDER / source).read_text(encoding="utf-8"))
    }
    for header in sorted(included):
        yield (_FOLDER / "include" / header).read_text(encoding="utf-8")
