"""The contact firmware of a board, and the memory that it does not live in."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.boards import GUARD_BYTES, Board, Memory, MemoryKind
from toolchain.contact.commands import ANSWER_WORDS, COMMAND_WORDS, WORD_BYTES
from toolchain.cycles.instruction import Instruction
from toolchain.cycles.program import read_program
from toolchain.device.build import BuildOptions, ModelFiles, build_files
from toolchain.device.compiler import find_tool
from toolchain.device.firmware import Firmware, FirmwareModel, FirmwarePart, Port
from toolchain.ir import DType
from toolchain.memory.bank_layout import layout
from toolchain.memory.firmware_size import least_data_bytes
from toolchain.packages import lazy
from toolchain.resources import RUNTIME_C

if TYPE_CHECKING:
    from elftools.elf import elffile, sections
else:
    elffile, sections = lazy("elftools.elf.elffile"), lazy("elftools.elf.sections")

_SOURCES = tuple(sorted((RUNTIME_C / "firmware" / "contact").glob("*.c")))
_CODE_BYTES = 16384
"""More than the firmware takes on any core."""
_ANSWER_AT = 64
_ARENA_BYTES = _ANSWER_AT + WORD_BYTES * ANSWER_WORDS
_MODEL = FirmwareModel(
    name="contact",
    parts=(FirmwarePart(_ARENA_BYTES),),
    inputs=(Port("command", "command", 0, (COMMAND_WORDS,), DType.UINT32),),
    outputs=(Port("answer", "answer", _ANSWER_AT, (ANSWER_WORDS,), DType.UINT32),),
    operators=(),
)
_ALIGNED_BYTES = 64
"""Ranges begin and end at multiples: no line of a cache and no word of an ECC is shared."""
_STACK_LOW = "thimble_stack_low"
_PAIR, _PAIRS = "contact_pair_", "contact_pairs"
PAIR_REPEATS = 64


@dataclass(frozen=True)
class Range:
    """Bytes of one bank."""

    bank: str
    start: int
    size_bytes: int


@dataclass(frozen=True)
class PairCode:
    """A pair of instructions that the firmware runs `PAIR_REPEATS` times. `instructions`: all of
    them, as they lie.
    """

    name: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Image:
    """Bytes of the firmware in flash, with their CRC-32."""

    start: int
    size_bytes: int
    crc: int


def contact_firmware(board: Board, folder: Path, *, external: bool) -> Firmware:
    """Build the contact firmware in `folder`. `external`: it makes the memory beside the chip
    readable. Raises as `build_files` does.
    """
    banks = layout(
        board,
        code_bytes=_CODE_BYTES,
        weight_bytes=0,
        data_bytes=least_data_bytes(),
        arena_bytes=_ARENA_BYTES,
    )
    options = BuildOptions(external=external)
    return build_files(board, [_MODEL], ModelFiles(_SOURCES), folder, banks, options)


def free_ranges(firmware: Firmware, *, external: bool) -> tuple[Range, ...]:
    """Parts of each bank of RAM that the start-up makes usable and the firmware does not live in.

    `external`: memory beside the chip is readable, too. The guard below the stack is left out.
    """
    taken = _taken(firmware.elf)
    banks = [m for m in firmware.board.memories if m.kind is MemoryKind.RAM and m.holds]
    return tuple(
        part for bank in banks if external or not bank.beside for part in _gaps(bank, taken)
    )


def images(firmware: Firmware) -> tuple[Image, ...]:
    """The parts that the firmware's file puts into flash."""
    flash = [m for m in firmware.board.memories if m.kind is MemoryKind.FLASH]
    with firmware.elf.open("rb") as file:
        loads = [s for s in elffile.ELFFile(file).iter_segments("PT_LOAD") if s["p_filesz"]]
        held = [(int(s["p_paddr"]), bytes(s.data())) for s in loads]
    return tuple(
        Image(start, len(data), zlib.crc32(data))
        for start, data in held
        if any(bank.origin <= start < bank.end for bank in flash)
    )


def pairs(firmware: Firmware) -> tuple[PairCode, ...]:
    """The pairs in the order of their numbers."""
    with firmware.elf.open("rb") as file:
        linked = elffile.ELFFile(file)
        symbols = linked.get_section_by_name(".symtab")
        assert isinstance(symbols, sections.SymbolTableSection)
        tables = symbols.get_symbol_by_name(_PAIRS)
        assert tables is not None
        table = tables[0]
        section = linked.get_section(table["st_shndx"])
        first = table["st_value"] - section["sh_addr"]
        data = section.data()[first : first + table["st_size"]]
    addresses = [int.from_bytes(data[i : i + 4], "little") & ~1 for i in range(0, len(data), 4)]
    program = read_program(firmware.elf, find_tool("objdump"))
    found = []
    for address in addresses:
        function = program.function_at(address)
        assert function is not None
        held = [i for at, i in program.instructions.items() if function.start <= at < function.end]
        repeated = tuple(held[1 : 1 + 2 * PAIR_REPEATS])  # behind the room on the stack
        found.append(PairCode(function.name.removeprefix(_PAIR), repeated))
    return tuple(found)


def _taken(elf: Path) -> list[tuple[int, int]]:
    """Begin and end of each section, and of the guard, in order."""
    with elf.open("rb") as file:
        linked = elffile.ELFFile(file)
        parts = [
            (int(s["sh_addr"]), int(s["sh_addr"] + s["sh_size"]))
            for s in linked.iter_sections()
            if s["sh_flags"] & 2 and s["sh_size"]  # SHF_ALLOC
        ]
        symbols = linked.get_section_by_name(".symtab")
        assert isinstance(symbols, sections.SymbolTableSection)
        (low,) = (int(s["st_value"]) for s in symbols.get_symbol_by_name(_STACK_LOW) or ())
    return sorted([*parts, (low - GUARD_BYTES, low)])


def _gaps(bank: Memory, taken: Sequence[tuple[int, int]]) -> Iterator[Range]:
    at = bank.origin
    for begin, end in (*taken, (bank.end, bank.end)):
        first = -(-at // _ALIGNED_BYTES) * _ALIGNED_BYTES
        last = min(begin, bank.end) // _ALIGNED_BYTES * _ALIGNED_BYTES
        if last > first:
            yield Range(bank.name, first, last - first)
        at = max(at, end)
