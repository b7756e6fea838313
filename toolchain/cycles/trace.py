"""Traces: instructions that an emulated firmware executed in its measured runs, counted by address.

The file is written by `runtime_c/qemu/instruction_counts.c`: text, one line an address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType

from toolchain.errors import InputError

_HEADER = "thimble-trace 1"
_NO_OPERATOR = -1
_COUNT_WORDS = 6
_TRAFFIC_WORDS = 6


@dataclass(frozen=True)
class Traffic:
    """Accesses of the instruction at one address to one region of memory.

    `loads`, `stores`: accesses (an LDM of 4 makes 4). `load_misses`, `store_misses`: lines that the
    cache simulated for the region did not hold. `write_backs`: written lines of the region that
    the instruction's misses pushed out.
    """

    loads: int = 0
    stores: int = 0
    load_misses: int = 0
    store_misses: int = 0
    write_backs: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Traffic)))


_NO_TRAFFIC: Mapping[str, Traffic] = MappingProxyType({})


@dataclass(frozen=True)
class Counts:
    """Events at one address.

    `executions`: how often it was issued; an instruction in an IT block counts when its condition
    fails, too. `taken`: how often what ran next was not the instruction after it. At one that is
    no branch, that is an exception's entry. `sequential_misses`, `jump_misses`: lines fetched for
    it that the simulated cache of instructions did not hold; a jump miss is that of a branch's
    destination. `traffic`: by name of the region, where there was any.
    """

    size_bytes: int
    executions: int
    taken: int = 0
    sequential_misses: int = 0
    jump_misses: int = 0
    traffic: Mapping[str, Traffic] = field(default_factory=lambda: _NO_TRAFFIC)

    def __add__(self, other: Counts) -> Counts:
        names = {**self.traffic, **other.traffic}
        none = Traffic()
        return Counts(
            self.size_bytes,
            self.executions + other.executions,
            self.taken + other.taken,
            self.sequential_misses + other.sequential_misses,
            self.jump_misses + other.jump_misses,
            {n: self.traffic.get(n, none) + other.traffic.get(n, none) for n in names},
        )


@dataclass(frozen=True)
class Section:
    """Instructions that ran between two marks. `operator` is its index in the firmware's model,
    None outside of operators. An operator that runs in several blocks has a section for each.
    """

    run: int
    operator: int | None
    counts: Mapping[int, Counts]

    @property
    def instructions(self) -> int:
        return sum(counts.executions for counts in self.counts.values())


@dataclass(frozen=True)
class Trace:
    """All complete runs, in order. A firmware built without counters has one section a run."""

    sections: tuple[Section, ...]

    @property
    def runs(self) -> int:
        return 1 + max((section.run for section in self.sections), default=-1)

    def run(self, index: int) -> Trace:
        """One of the runs; a negative index counts from the last.

        Raises InputError if there is none of that index.
        """
        wanted = index if index >= 0 else self.runs + index
        if not 0 <= wanted < self.runs:
            raise InputError(f"the trace has {self.runs} runs, none with the index {index}")
        return Trace(tuple(s for s in self.sections if s.run == wanted))

    def last(self, count: int) -> Trace:
        """The last `count` of the runs, or all if there are fewer."""
        return Trace(tuple(s for s in self.sections if s.run >= self.runs - count))

    def operators(self) -> Mapping[int | None, Section]:
        """One section an operator (None: outside): the sum of its sections of all runs."""
        indices = dict.fromkeys(section.operator for section in self.sections)
        return {i: summed([s for s in self.sections if s.operator == i]) for i in indices}

    @property
    def whole(self) -> Section:
        """The sum of all sections."""
        return summed(self.sections)


def summed(sections: Sequence[Section]) -> Section:
    """The sum of sections, with run and operator of the first."""
    total: dict[int, Counts] = {}
    for section in sections:
        for address, counts in section.counts.items():
            total[address] = total[address] + counts if address in total else counts
    first = sections[0] if sections else Section(0, None, {})
    return Section(first.run, first.operator, MappingProxyType(dict(sorted(total.items()))))


def read_trace(file: Path, regions: Sequence[str] = ()) -> Trace:
    """The complete runs in a plugin's file; errors and `regions` are those of `TraceFile`."""
    return TraceFile(file, regions).read()


class TraceFile:
    """A plugin's file, which grows by one run at a time.

    `regions`: their names, in the order of the plugin's arguments.
    """

    def __init__(self, file: Path, regions: Sequence[str] = ()) -> None:
        self._file = file
        self._regions = tuple(regions)
        self._bytes = self._lines = 0
        self._sections: tuple[Section, ...] = ()

    def read(self) -> Trace:
        """The complete runs so far. Reads on where it ended the last time.

        Raises InputError if the file is no trace or is cut off in the middle of a run.
        """
        try:
            with self._file.open("rb") as file:
                file.seek(self._bytes)
                data = file.read()
            lines = data.decode("ascii").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the trace {self._file}: {error}") from error
        first = 0
        if not self._lines:
            expected = f"{_HEADER} {len(self._regions)}"
            if not lines or lines[0] != expected:
                begin = lines[0] if lines else "nothing"
                raise InputError(
                    f"{self._file} is no trace: it begins with {begin!r}, not {expected!r}"
                )
            first = 1
        reader = _Reader(self._file, lines, self._regions, first, self._lines)
        self._sections += tuple(reader.sections(Trace(self._sections).runs))
        self._bytes += len(data)
        self._lines += len(lines)
        return Trace(self._sections)


@dataclass
class _Reader:
    """`at`: the next of `lines`, before which the file has `lines_before`."""

    file: Path
    lines: Sequence[str]
    regions: tuple[str, ...]
    at: int
    lines_before: int

    def _failed(self, what: str) -> InputError:
        return InputError(f"the trace {self.file}, line {self.lines_before + self.at}: {what}")

    def _next(self) -> list[str]:
        if self.at == len(self.lines):
            raise self._failed("the file is cut off: the run that it was writing did not end")
        self.at += 1
        return self.lines[self.at - 1].split(" ")

    def sections(self, run: int) -> Iterator[Section]:
        """Sections of the runs from number `run` on."""
        while self.at < len(self.lines):
            if self._next() != ["run"]:
                raise self._failed("a run should begin here")
            while (words := self._next()) != ["end"]:
                if len(words) != 3 or words[0] != "section":
                    raise self._failed("a section should begin here, or the run end")
                index, count = (int(word) for word in self._numbers(words[1:], 10))
                counts = dict(self._counts(self._next()) for _ in range(count))
                operator = None if index == _NO_OPERATOR else index
                yield Section(run, operator, MappingProxyType(dict(sorted(counts.items()))))
            run += 1

    def _numbers(self, words: Iterable[str], base: int) -> list[int]:
        try:
            return [int(word, base) for word in words]
        except ValueError as error:
            raise self._failed(str(error)) from error

    def _counts(self, words: Sequence[str]) -> tuple[int, Counts]:
        if len(words) < _COUNT_WORDS or (len(words) - _COUNT_WORDS) % _TRAFFIC_WORDS:
            raise self._failed(f"{len(words)} numbers are not what is counted of an address")
        (address,) = self._numbers(words[:1], 16)
        size, executions, taken, sequential, jumps, *rest = self._numbers(words[1:], 10)
        traffic = {}
        for i in range(0, len(rest), _TRAFFIC_WORDS):
            region, *amounts = rest[i : i + _TRAFFIC_WORDS]
            if not 0 <= region < len(self.regions):
                raise self._failed(f"there is no region {region}")
            traffic[self.regions[region]] = Traffic(*amounts)
        return address, Counts(size, executions, taken, sequential, jumps, traffic or _NO_TRAFFIC)
