"""A program as its core sees it: instructions by address and the functions that they belong to."""

from __future__ import annotations

import bisect
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from toolchain.cycles.instruction import Instruction, parse_instruction
from toolchain.errors import ResultError
from toolchain.packages import lazy

if TYPE_CHECKING:
    from elftools.common import exceptions
    from elftools.elf import elffile, sections
else:
    exceptions = lazy("elftools.common.exceptions")
    elffile, sections = lazy("elftools.elf.elffile"), lazy("elftools.elf.sections")

_ARMV8_1M_MAIN = 21
"""Tag_CPU_arch of cores that may have MVE (ELF for the Arm Architecture, addenda, 3.3.5.2). From
that tag alone objdump prints MVE as instructions of a coprocessor; `-m` makes it print MVE."""

_LABEL = re.compile(r"([0-9a-f]+) <(.+)>:")
_LINE = re.compile(r"\s*([0-9a-f]+):\t((?:[0-9a-f]{4} ?){1,2})\s*\t(.+)")


@dataclass(frozen=True)
class Function:
    """A symbol in the code and the addresses from `start` to before `end`, literals included."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Program:
    """Instructions by address, in ascending order, and functions in ascending order."""

    instructions: Mapping[int, Instruction]
    functions: tuple[Function, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [function.start for function in self.functions]

    def function_at(self, address: int) -> Function | None:
        """The function that an address lies in; None outside of all."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self.functions[at].end:
            return None
        return self.functions[at]

    @property
    def unknown(self) -> tuple[Instruction, ...]:
        """Instructions that no table knows (`Instruction.unknown`)."""
        return tuple(i for i in self.instructions.values() if i.unknown)


def parse_program(text: str) -> Program:
    """The program that `objdump -d` printed, raw instructions shown.

    Data in the code (`.word`, `.short`, `.byte`) are no instructions.
    """
    instructions: dict[int, Instruction] = {}
    labels: list[tuple[int, str]] = []
    end = 0
    for line in text.splitlines():
        label = _LABEL.fullmatch(line)
        if label:
            labels.append((int(label.group(1), 16), label.group(2)))
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        address, raw, printed = int(match.group(1), 16), match.group(2), match.group(3)
        size = len(raw.replace(" ", "")) // 2
        end = max(end, address + size)
        if not printed.startswith("."):
            instructions[address] = parse_instruction(address, size, printed)
    labels.sort()
    ends = [start for start, _ in labels[1:]] + [end]
    functions = tuple(
        Function(name, start, stop) for (start, name), stop in zip(labels, ends, strict=True)
    )
    return Program(MappingProxyType(dict(sorted(instructions.items()))), functions)


def _architecture(elf: Path) -> int:
    """Tag_CPU_arch; 0 where the file has no attributes. Raises ResultError for no ELF file."""
    try:
        with elf.open("rb") as stream:
            section = elffile.ELFFile(stream).get_section_by_name(".ARM.attributes")
            if not isinstance(section, sections.ARMAttributesSection):
                return 0
            for vendor in section.iter_subsections():
                for scope in vendor.iter_subsubsections():
                    for attribute in scope.iter_attributes("TAG_CPU_ARCH"):
                        return int(attribute.value)
    except (exceptions.ELFError, OSError) as error:
        raise ResultError(f"{elf} is no ELF file that can be read: {error}") from error
    return 0


def read_program(elf: Path, objdump: str) -> Program:
    """The code in an ELF file's executable sections, disassembled by `objdump` (its path).

    The file's attributes tell the disassembler the core; literal pools are told from code by the
    mapping symbols. Raises ResultError with objdump's words when it fails.
    """
    machine = ["-m", "armv8.1-m.main"] if _architecture(elf) == _ARMV8_1M_MAIN else []
    done = subprocess.run(
        [objdump, "-d", *machine, str(elf)],
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )
    if done.returncode:
        raise ResultError(f"{objdump} cannot disassemble {elf}: {done.stderr.strip()}")
    program = parse_program(done.stdout)
    if not program.instructions:
        raise ResultError(f"{elf} holds no code for an Arm core that {objdump} can disassemble")
    return program
