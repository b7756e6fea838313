"""Bytes of code of every kernel, measured in objects, by core, and of each board's firmware around.

    .venv/bin/python -m benchmarks.code [--cores CORE,..] [--all] [--boards] [--write]

All kernels of which the sizes are missing or of other C (`--all`: every kernel) are compiled for
each core with the flags of its firmware, and joined with what they call of the C library by
`ld -r`, which keeps the sections of functions apart. A row has the bytes of a function with
what it alone refers to, and the functions that it calls: a linker that drops unused sections keeps
just those that a firmware reaches. --boards builds firmware of a small model for each board of the
cores, and takes off what belongs to the model. --write keeps the sizes
(`toolchain/kernels/sizes/`), from which `plan` predicts the code of a firmware.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection
from rich.console import Console

from toolchain import compile_model
from toolchain.boards import Board, board, boards
from toolchain.device import compiler
from toolchain.device.build import ModelFiles, kernel_units
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.kernels.code_sizes import (
    PART,
    CodeSizes,
    Function,
    code_digest,
    code_sizes,
    measured_core,
    stale_functions,
    standing,
    write_code_sizes,
)
from toolchain.planning.options import PlanOptions

SMALLEST = ("--cores cortex-m4",)
CORES: Mapping[str, str] = {
    "cortex-m0plus": "nucleo-g0b1re",
    "cortex-m3": "mps2-an385",
    "cortex-m4": "nucleo-l4r5zi",
    "cortex-m33": "nucleo-u575zi-q",
    "cortex-m7": "nucleo-h743zi",
    "cortex-m55": "mps3-an547",
}
"""A board of each core that is measured."""
MODEL = Path(__file__).parents[1] / "examples" / "digits" / "digits_int8.tflite"
_RELOCATABLE = ("-nostdlib", "-Wl,-r", "-Wl,--unique=.text*", "-Wl,--unique=.rodata*")
_CODE = (".text", ".rodata")
_ALIGNMENT = 4


@dataclass(frozen=True)
class _Linked:
    """A relocatable program: bytes of its sections of code, the symbols at each that others see,
    and the sections that each refers to."""

    sizes: Mapping[int, int]
    names: Mapping[int, str]
    refers: Mapping[int, frozenset[int]]

    def functions(self) -> dict[str, tuple[int, tuple[str, ...]]]:
        """Of each named section its bytes, with those of the unnamed ones that it alone reaches,
        and the names that it reaches otherwise."""
        owners: dict[int, set[int]] = {}
        reached = {at: self._reached(at) for at in self.names}
        for at, sections in reached.items():
            for section in sections:
                owners.setdefault(section, set()).add(at)
        named = dict(self.names)
        shared = {s for s, by in owners.items() if len(by) > 1 and s not in named}
        for section in sorted(shared):
            users = min(named[owner] for owner in owners[section])
            count = sum(name.startswith(f"{users}{PART}") for name in named.values())
            named[section] = f"{users}{PART}{count}"
        found = {}
        for at, name in named.items():
            inside, called, waiting = {at}, set[str](), [at]
            while waiting:
                for other in self.refers.get(waiting.pop(), frozenset()):
                    if other in named:
                        called.add(named[other])
                    elif other not in inside:
                        inside.add(other)
                        waiting.append(other)
            found[name] = sum(self.sizes[each] for each in inside), tuple(sorted(called - {name}))
        return found

    def _reached(self, begin: int) -> set[int]:
        """The unnamed sections that one reaches, past no named one."""
        seen, waiting = set[int](), [begin]
        while waiting:
            for other in self.refers.get(waiting.pop(), frozenset()) - seen:
                if other not in self.names:
                    seen.add(other)
                    waiting.append(other)
        return seen


def _is_code(section: Section) -> bool:
    return bool(section.name.startswith(_CODE) and section["sh_size"])


def _linked(path: Path) -> _Linked:
    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        numbered = list(elf.iter_sections())
        sizes = {
            at: -(-section["sh_size"] // _ALIGNMENT) * _ALIGNMENT
            for at, section in enumerate(numbered)
            if _is_code(section)
        }
        names: dict[int, str] = {}
        for symbol in table.iter_symbols():
            at = symbol["st_shndx"]
            if symbol["st_info"]["bind"] != "STB_LOCAL" and at in sizes:
                names[at] = min(names.get(at, symbol.name), symbol.name, key=lambda n: (len(n), n))
        refers: dict[int, frozenset[int]] = {}
        for section in numbered:
            if isinstance(section, RelocationSection) and section["sh_info"] in sizes:
                places = {
                    table.get_symbol(entry["r_info_sym"])["st_shndx"]
                    for entry in section.iter_relocations()
                }
                refers[section["sh_info"]] = frozenset(places & sizes.keys())
    return _Linked(sizes, names, refers)


def measured(core: Board, wanted: frozenset[str] | None) -> dict[str, Function]:
    """The sizes of all functions of Thimble's and CMSIS-NN's kernels, or of the `wanted` ones, for
    a board's core, and of what they call."""
    ours, arm = runtime_c.tree(), cmsis_nn.tree(cmsis_nn.find())
    kernels = [path for path in ours.files() if wanted is None or path.stem in wanted]
    theirs = arm.files() if wanted is None else ()
    files = ModelFiles((), tuple(kernels), tuple(theirs), arm.include)
    objects = compiler.compile_units(kernel_units(core, files))
    with tempfile.TemporaryDirectory() as folder:
        joined = Path(folder) / "joined.o"
        gcc, flags = compiler.find_tool("gcc"), [*core.compiler_flags, *_RELOCATABLE]
        libraries = ["-lm", "-lc", "-lgcc"]
        command = [gcc, *flags, *map(str, objects), *libraries, "-o", str(joined)]
        subprocess.run(command, check=True)
        found = _linked(joined).functions()
    return {
        name: Function(size, called, code_digest(name.partition(PART)[0]))
        for name, (size, called) in found.items()
    }


def around(target: Board, sizes: CodeSizes) -> int:
    """Bytes of code of a board's firmware, but for kernels and the model's own functions."""
    with tempfile.TemporaryDirectory() as folder:
        made = compile_model(MODEL, target.name, Path(folder), PlanOptions(fast=True))
        assert made.sizes is not None
        elf = Path(folder) / "firmware.elf"
        own = sum(size for name, size in _symbols(elf) if name.startswith("digits_int8"))
        functions = {name for op in made.plan.operators for name in op.functions}
    return int(made.sizes.code_bytes - own - sum(sizes.linked(functions).values()))


def _symbols(elf: Path) -> Iterator[tuple[str, int]]:
    """The symbols of code and their bytes."""
    with elf.open("rb") as file:
        program = ELFFile(file)
        table = program.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        sections = list(program.iter_sections())
        for symbol in table.iter_symbols():
            at = symbol["st_shndx"]
            if isinstance(at, int) and sections[at].name in (".text", ".rodata"):
                yield symbol.name, symbol["st_size"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cores", default=",".join(CORES), help="these alone")
    parser.add_argument("--all", action="store_true", help="every kernel, not the changed ones")
    parser.add_argument("--boards", action="store_true", help="also firmware of each board")
    parser.add_argument("--write", action="store_true", help="keep the sizes")
    options = parser.parse_args()
    console = Console()
    for name in options.cores.split(","):
        old, target = code_sizes(name), board(CORES[name])
        stale = None if options.all or not old.functions else stale_functions(old)
        found = measured(target, stale) if stale is None or stale else {}
        kept = {} if stale is None else standing(old)
        functions = {**kept, **found}
        sizes = CodeSizes(functions, old.firmware)
        changed = {n for n, f in functions.items() if old.functions.get(n) != f}
        gone = len(old.functions.keys() - functions.keys())
        console.print(f"{name}: {len(functions)} functions, {len(changed)} changed, {gone} gone")
        if options.boards:
            firmware = {
                each: around(one, sizes)
                for each, one in boards().items()
                if not one.is_host and measured_core(one.core) == name
            }
            console.print(f"{name}: firmware {firmware}", highlight=False)
            sizes = CodeSizes(functions, firmware)
        if options.write:
            write_code_sizes(name, sizes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
