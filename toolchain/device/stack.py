"""A bound on a model's stack: the compiler's own frames (gcc's -fcallgraph-info=su) along the graph
of calls.

A frame is what gcc says of it, and a call is what gcc says of it, too; a call through a pointer may
reach each function whose address an object takes, as its relocations tell. Functions in assembly,
those of the C library and of libgcc, have no such figures: their instructions are read from the
linked program, and each that lowers the stack pointer counts once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.device.compiler import CALLS_SUFFIX, disassembly
from toolchain.ir import StackNeed
from toolchain.packages import lazy

if TYPE_CHECKING:
    from elftools.elf import elffile, relocation, sections
else:
    elffile = lazy("elftools.elf.elffile")
    relocation, sections = lazy("elftools.elf.relocation"), lazy("elftools.elf.sections")

STACK_ALIGNMENT_BYTES = 8
"""The alignment of a stack at a call (Arm's Procedure Call Standard, 6.2.1.2)."""
_NODE = re.compile(r'node: \{ title: "(?P<title>[^"]+)" label: "(?P<label>[^"]*)"')
_EDGE = re.compile(r'edge: \{ sourcename: "(?P<caller>[^"]+)" targetname: "(?P<callee>[^"]+)"')
_FRAME = re.compile(r"\\n(?P<bytes>\d+) bytes \((?P<kind>[a-z,]+)\)")
_INDIRECT = "__indirect_call"
_BRANCHES = frozenset({10, 29, 30, 51, 102, 103, 136, 137, 138})
"""R_ARM_THM_CALL, R_ARM_JUMP24, R_ARM_THM_JUMP24, 19, 11, 8, and the branches of Armv8.1-M (ELF for
the Arm Architecture, 5.6.1)."""
_NEVER_CODE = (".rel.debug", ".rel.ARM.ex")
_LINE = re.compile(r"\s*([0-9a-f]+):\t(?:[0-9a-f]{4} ?)+\s*\t(?P<name>[a-z0-9.]+)\s*(?P<rest>.*)")
_LABEL = re.compile(r"([0-9a-f]+) <(.+)>:")
_TO = re.compile(r"<(?P<name>[^>+]+)(?:\+0x[0-9a-f]+)?>")
_LIST = re.compile(r"\{(.*)\}")
_WORD_BYTES = 4


@dataclass(frozen=True)
class _Object:
    """The graph of one object: frames by function (None: computed as it runs), callees by function,
    and the functions whose address it takes."""

    frames: Mapping[str, int | None]
    calls: Mapping[str, tuple[str, ...]]
    pointed: tuple[str, ...]
    is_model: bool


def _plain(title: str) -> str:
    """gcc writes the name of a static function behind its file's."""
    return title.rpartition(":")[2]


def _read(path: Path) -> _Object:
    """The object at `path`, with the graph of its calls beside it."""
    text = path.with_suffix(CALLS_SUFFIX).read_text(encoding="utf-8", errors="replace")
    frames: dict[str, int | None] = {}
    calls: dict[str, list[str]] = {}
    for match in _NODE.finditer(text):
        frame = _FRAME.search(match["label"])
        if frame is not None:
            size = int(frame["bytes"]) if frame["kind"] in ("static", "dynamic,bounded") else None
            frames[_plain(match["title"])] = size
    for match in _EDGE.finditer(text):
        calls.setdefault(_plain(match["caller"]), []).append(_plain(match["callee"]))
    each = {caller: tuple(dict.fromkeys(callees)) for caller, callees in calls.items()}
    pointed = tuple(dict.fromkeys(_pointed(path)))
    return _Object(frames, each, pointed, ".model." in path.name)


def _pointed(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        elf = elffile.ELFFile(file)
        for section in elf.iter_sections():
            if not isinstance(section, relocation.RelocationSection):
                continue
            if section.name.startswith(_NEVER_CODE):
                continue
            symbols = elf.get_section(section["sh_link"])
            assert isinstance(symbols, sections.SymbolTableSection)
            for entry in section.iter_relocations():
                symbol = symbols.get_symbol(entry["r_info_sym"])
                kind = symbol["st_info"]["type"]
                if entry["r_info_type"] not in _BRANCHES and kind in ("STT_FUNC", "STT_NOTYPE"):
                    yield symbol.name


@dataclass(frozen=True)
class _Label:
    """The code behind one label of a disassembly. `lowered`: bytes by which it lowers the stack
    pointer, None where that is computed; `branches`: labels that it goes to, or runs into;
    `by_address`: it also goes where a register says."""

    lowered: int | None
    branches: frozenset[str]
    by_address: bool


@dataclass(frozen=True)
class _Program:
    """The functions of a linked program that gcc knows nothing of."""

    elf: Path

    @cached_property
    def _labels(self) -> Mapping[str, _Label]:
        found: list[tuple[str, list[tuple[str, str]]]] = []
        for line in disassembly(self.elf).splitlines():
            label = _LABEL.fullmatch(line)
            if label:
                found.append((label[2], []))
                continue
            match = _LINE.match(line)
            if match and found and not match["name"].startswith("."):
                found[-1][1].append((match["name"], match["rest"].partition("@")[0]))
        after = [name for name, _ in found[1:]] + [""]
        return {
            name: _label(lines, below) for (name, lines), below in zip(found, after, strict=True)
        }

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The label of each symbol: those at one address share the one that objdump prints."""
        with self.elf.open("rb") as file:
            table = elffile.ELFFile(file).get_section_by_name(".symtab")
            assert isinstance(table, sections.SymbolTableSection)
            at = {
                symbol.name: symbol["st_value"] & ~1
                for symbol in table.iter_symbols()
                if symbol["st_info"]["type"] in ("STT_FUNC", "STT_NOTYPE")
                and not symbol.name.startswith("$")
            }
        shown = {at[name]: name for name in self._labels if name in at}
        return {name: shown[address] for name, address in at.items() if address in shown}

    def lowered(self, function: str) -> int | None:
        """Bytes of stack of a function and of all that it branches to; None where they are not
        known."""
        total, queue, seen = 0, [function], set()
        while queue:
            label = self._names.get(queue.pop(), "")
            if label in seen:
                continue
            seen.add(label)
            body = self._labels.get(label)
            if body is None or body.lowered is None or body.by_address:
                return None
            total += body.lowered
            queue.extend(body.branches)
        return total


def _label(lines: Sequence[tuple[str, str]], below: str) -> _Label:
    lowered: int | None = 0
    branches: set[str] = set()
    by_address = False
    for name, rest in lines:
        size = _lowers(name, rest)
        lowered = None if size is None or lowered is None else lowered + size
        to = _TO.search(rest)
        if name.startswith(("b", "cb")) and to is not None:
            branches.add(to["name"])
        by_address = by_address or (
            (name.startswith("blx") and to is None)
            or (name.startswith("bx") and rest.strip() != "lr")
            or (_loads_pc(name, rest) and "[sp" not in rest)  # `mov pc` is a switch
        )
    if lines and below and not _leaves(*lines[-1]):
        branches.add(below)
    return _Label(lowered, frozenset(branches), by_address)


def _leaves(name: str, rest: str) -> bool:
    """Whether nothing runs behind an instruction."""
    jump = name in ("b", "b.n", "b.w", "bx", "udf", "nop")
    return jump or _loads_pc(name, rest) or (name.startswith(("pop", "ldm")) and "pc" in rest)


def _loads_pc(name: str, rest: str) -> bool:
    """From the stack it is a return, from elsewhere a call by address."""
    return name.startswith("ldr") and rest.startswith("pc")


def _lowers(name: str, rest: str) -> int | None:
    """Bytes by which an instruction lowers the stack pointer; None if that is computed."""
    if name.startswith(("push", "vpush")):
        return _registers(rest)
    if name.startswith(("stmdb", "vstmdb")) and rest.startswith("sp!"):
        return _registers(rest)
    if name.startswith("sub") and re.match(r"sp\b", rest):
        number = re.search(r"#(\d+)", rest)
        return int(number[1]) if number else None
    lower = re.search(r"\[sp, #-(\d+)\]!", rest)
    return int(lower[1]) if lower else 0


def _registers(rest: str) -> int:
    listed = _LIST.search(rest)
    total = 0
    for item in listed[1].split(",") if listed else ():
        first, _, last = item.strip().partition("-")
        count = int(last[1:]) - int(first[1:]) + 1 if last else 1
        total += count * (2 * _WORD_BYTES if first.startswith("d") else _WORD_BYTES)
    return total


@dataclass
class _Walk:
    """Depths of functions of several objects, each found once."""

    objects: Sequence[_Object]
    program: _Program
    assembly: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    unbounded: set[str] = field(default_factory=set)
    _depths: dict[tuple[int, str], int] = field(default_factory=dict)
    _open: set[tuple[int, str]] = field(default_factory=set)

    @cached_property
    def _home(self) -> Mapping[str, int]:
        return {name: at for at, one in enumerate(self.objects) for name in one.frames}

    def depth(self, at: int, name: str) -> int:
        """Bytes of stack of the function `name`, as object `at` knows it, and of its callees."""
        return self._depth(at, name)[0]

    def _depth(self, at: int, name: str) -> tuple[int, bool]:
        """The depth, and whether it holds however the function is reached: not where a call by
        pointer was left out, because it would reach a function that is not over yet. Kernels do not
        call themselves by a pointer (MISRA C:2012, rule 17.2)."""
        if name not in self.objects[at].frames:
            if name not in self._home:
                return self._without_frame(name), True
            at = self._home[name]
        key = (at, name)
        if key in self._depths:
            return self._depths[key], True
        frame = self.objects[at].frames[name]
        if frame is None:
            self.unbounded.add(name)
        self._open.add(key)
        most, always = 0, True
        for to, callee, by_pointer in self._callees(at, name):
            if self._key(to, callee) in self._open:
                always = always and not by_pointer
                if not by_pointer:
                    self.unbounded.add(callee)
                continue
            below, holds = self._depth(to, callee)
            most, always = max(most, below), always and holds
        self._open.remove(key)
        total = (frame or 0) + most
        if always:
            self._depths[key] = total
        return total, always

    def _key(self, at: int, name: str) -> tuple[int, str]:
        return (at if name in self.objects[at].frames else self._home.get(name, at), name)

    def _callees(self, at: int, name: str) -> Iterator[tuple[int, str, bool]]:
        """Callees: the object that knows each, its name, and whether it is called by pointer."""
        one = self.objects[at]
        for callee in one.calls.get(name, ()):
            if callee != _INDIRECT:
                yield at, callee, False
                continue
            # Operators are in the table of their model, and kernels call kernels.
            for number, other in enumerate(self.objects):
                if number == at or not one.is_model:
                    for pointed in other.pointed:
                        home = number if pointed in other.frames else self._home.get(pointed)
                        if home is not None and self.objects[home].is_model is one.is_model:
                            yield home, pointed, True

    def _without_frame(self, name: str) -> int:
        size = self.program.lowered(name)
        (self.unknown if size is None else self.assembly).add(name)
        return size or 0


def tells_calls(objects: Iterable[Path]) -> bool:
    """Whether each object has the graph of its calls beside it: gcc makes it from 10 on."""
    return all(path.with_suffix(CALLS_SUFFIX).is_file() for path in objects)


def stack_need(prefix: str, objects: Iterable[Path], elf: Path, compiler: str) -> StackNeed:
    """The stack of the functions whose names begin with `<prefix>_` and that callers see.

    `objects` are those of the model and of its kernels, with gcc's `.ci` files beside them, and
    `elf` is a program in which they are linked. `compiler` is said with the result.
    """
    read = [_read(path) for path in objects]
    walk = _Walk(read, _Program(elf))
    entries = [
        (at, name)
        for at, one in enumerate(read)
        if not one.frames.keys().isdisjoint({f"{prefix}_run", f"{prefix}_push_rows"})
        for name in one.frames
        if name.startswith(f"{prefix}_")
    ]
    size = max((walk.depth(at, name) for at, name in entries), default=0)
    unit = STACK_ALIGNMENT_BYTES
    return StackNeed(
        None if walk.unbounded else -(-size // unit) * unit,
        compiler,
        tuple(sorted(walk.assembly)),
        tuple(sorted(walk.unknown)),
        tuple(sorted(walk.unbounded)),
    )
