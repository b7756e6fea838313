"""A trace read as cycles of a core: by operator, by function, by address, by loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

from toolchain.cycles.core_timing import CoreTiming
from toolchain.cycles.instruction import Instruction
from toolchain.cycles.memory_system import MemorySystem, Stall
from toolchain.cycles.program import Program
from toolchain.cycles.trace import Counts, Section, Trace
from toolchain.errors import ResultError


@dataclass(frozen=True)
class Cycles:
    """`core`: by the core's timing model. `fetch`, `data`: waiting for memories; a load that cannot
    overlap the one before it, because that went to another memory, waits for data."""

    core: float = 0.0
    fetch: float = 0.0
    data: float = 0.0

    @property
    def total(self) -> float:
        return self.core + self.fetch + self.data

    @property
    def stalls(self) -> float:
        return self.fetch + self.data

    def __add__(self, other: Cycles) -> Cycles:
        return Cycles(self.core + other.core, self.fetch + other.fetch, self.data + other.data)


@dataclass(frozen=True)
class Line:
    """An executed instruction and the cycles of all its executions."""

    instruction: Instruction
    executions: int
    taken: int
    cycles: Cycles

    def __add__(self, other: Line) -> Line:
        """The sum of two lines of one instruction."""
        return Line(
            self.instruction,
            self.executions + other.executions,
            self.taken + other.taken,
            self.cycles + other.cycles,
        )


@dataclass(frozen=True)
class SectionReading:
    """An operator (None: what ran outside of operators) and its lines, in order of addresses."""

    operator: int | None
    lines: Mapping[int, Line]
    functions: Mapping[str, SectionTotal]

    @cached_property
    def total(self) -> SectionTotal:
        return _total(self.lines.values())

    @property
    def cycles(self) -> Cycles:
        return self.total.cycles

    @property
    def instructions(self) -> int:
        return self.total.instructions


@dataclass(frozen=True)
class SectionTotal:
    """Executed instructions and their cycles."""

    instructions: int = 0
    cycles: Cycles = Cycles()

    def __add__(self, other: SectionTotal) -> SectionTotal:
        return SectionTotal(self.instructions + other.instructions, self.cycles + other.cycles)


@dataclass(frozen=True)
class Reading:
    """One run, or the sum of several, by operator. `core`: whose cycles these are."""

    core: str
    program: Program
    sections: tuple[SectionReading, ...]

    def operator(self, index: int | None) -> SectionReading:
        """The section of an operator. Raises KeyError if it did not run."""
        for section in self.sections:
            if section.operator == index:
                return section
        raise KeyError(index)

    @cached_property
    def total(self) -> SectionTotal:
        return sum((section.total for section in self.sections), SectionTotal())

    @property
    def cycles(self) -> Cycles:
        return self.total.cycles

    @property
    def instructions(self) -> int:
        return self.total.instructions

    @cached_property
    def functions(self) -> Mapping[str, SectionTotal]:
        """Totals by function, most cycles first."""
        totals: dict[str, SectionTotal] = {}
        for section in self.sections:
            for name, total in section.functions.items():
                totals[name] = totals.get(name, SectionTotal()) + total
        return _most_first(totals)


def read(
    trace: Trace, program: Program, timing: CoreTiming, memory: MemorySystem | None = None
) -> Reading:
    """The cycles of a trace. Sections of the same operator are added up.

    `memory`: the memories with which the trace was counted, for the stalls; None: memories never
    stall. Raises ResultError if the trace executed an instruction that the program does not have:
    it is of another program.
    """
    sections = tuple(
        _read_section(section, program, timing, memory) for section in trace.operators().values()
    )
    return Reading(timing.name, program, sections)


def _read_section(
    section: Section, program: Program, timing: CoreTiming, memory: MemorySystem | None
) -> SectionReading:
    core: dict[int, float] = {}
    apart: dict[int, float] = {}
    for block in _blocks(section.counts, program):
        core.update(_block_cycles(block, section.counts, program, timing))
        if memory is not None:
            apart.update(_apart_cycles(block, section.counts, timing, memory))
    waits = memory.stalls(section, core) if memory is not None else {}
    lines: dict[int, Line] = {}
    by_function: dict[str, SectionTotal] = {}
    for address, cycles in core.items():
        counts, wait = section.counts[address], waits.get(address, Stall())
        line = Line(
            program.instructions[address],
            counts.executions,
            counts.taken,
            Cycles(cycles, wait.fetch, wait.data + apart.get(address, 0.0)),
        )
        lines[address] = line
        function = program.function_at(address)
        name = function.name if function is not None else f"{address:#x}"
        by_function[name] = by_function.get(name, SectionTotal()) + _total([line])
    return SectionReading(section.operator, MappingProxyType(lines), _most_first(by_function))


def _total(lines: Iterable[Line]) -> SectionTotal:
    executed = list(lines)
    return SectionTotal(
        sum(line.executions for line in executed),
        Cycles(
            sum(line.cycles.core for line in executed),
            sum(line.cycles.fetch for line in executed),
            sum(line.cycles.data for line in executed),
        ),
    )


def _most_first(totals: Mapping[str, SectionTotal]) -> Mapping[str, SectionTotal]:
    order = sorted(totals, key=lambda name: (-totals[name].cycles.total, name))
    return MappingProxyType({name: totals[name] for name in order})


def _blocks(counts: Mapping[int, Counts], program: Program) -> Iterator[list[Instruction]]:
    """Straight runs: neighbours in memory that were executed equally often, none of which but the
    last branched away. Where a branch was never taken, the run goes on.
    """
    block: list[Instruction] = []
    for address in sorted(counts):
        if not counts[address].executions:
            continue
        instruction = program.instructions.get(address)
        if instruction is None:
            raise ResultError(
                f"the trace has an instruction at {address:#x}, the program has none there; the "
                "trace is another program's, or that code was not linked"
            )
        if block and not _goes_on(block[-1], instruction, counts):
            yield block
            block = []
        block.append(instruction)
    if block:
        yield block


def _goes_on(before: Instruction, after: Instruction, counts: Mapping[int, Counts]) -> bool:
    left, right = counts[before.address], counts[after.address]
    if before.end != after.address or left.executions != right.executions:
        return False
    return not (before.is_branch and left.taken)


def _block_cycles(
    block: Sequence[Instruction],
    counts: Mapping[int, Counts],
    program: Program,
    timing: CoreTiming,
) -> Iterator[tuple[int, float]]:
    last = block[-1]
    again = counts[last.address].taken if last.target == block[0].address else 0
    entries = counts[last.address].executions - again
    once = timing.block_cycles(block, repeats=False)
    repeated = timing.block_cycles(block, repeats=True) if again else once
    for at, instruction in enumerate(block):
        cycles = once[at] * entries + repeated[at] * again
        taken = counts[instruction.address].taken
        if taken and instruction.is_branch:
            previous = block[at - 1] if at else None
            target = program.instructions.get(instruction.target or -1)
            cycles += taken * timing.taken_cycles(instruction, previous, target)
        yield instruction.address, cycles


def _apart_cycles(
    block: Sequence[Instruction],
    counts: Mapping[int, Counts],
    timing: CoreTiming,
    memory: MemorySystem,
) -> Iterator[tuple[int, float]]:
    for previous, instruction in pairwise(block):
        overlapped = timing.overlapped_cycles(previous, instruction)
        here = counts[instruction.address]
        if overlapped and memory.are_apart(counts[previous.address], here):
            yield instruction.address, overlapped * here.executions


@dataclass(frozen=True)
class HotLoop:
    """An innermost loop, `start` to before `end`, in one function, of all operators together.

    `entries`: how often it was begun; `iterations`: how often its first instruction ran. Functions
    that it calls are not in its cycles. `operators`: the part of each operator's cycles (0 to 1)
    that it takes, the operators in which it takes most cycles first; None: outside of operators.
    `share`: the part of all cycles.
    """

    function: str
    start: int
    end: int
    entries: int
    iterations: int
    lines: tuple[Line, ...]
    operators: Mapping[int | None, float]
    share: float

    @cached_property
    def total(self) -> SectionTotal:
        return _total(self.lines)

    @property
    def cycles(self) -> Cycles:
        return self.total.cycles

    @property
    def cycles_per_iteration(self) -> float:
        return self.cycles.total / self.iterations


def hot_loops(reading: Reading, most: int) -> tuple[HotLoop, ...]:
    """The loops that take most cycles, at most `most`, most cycles first."""
    places: dict[tuple[int, int], list[tuple[SectionReading, int]]] = {}
    for section in reading.sections:
        for start, end, entries in _loops(section, reading.program):
            places.setdefault((start, end), []).append((section, entries))
    loops = [_hot_loop(reading, *place, where) for place, where in places.items()]
    loops.sort(key=lambda loop: (-loop.cycles.total, loop.start))
    return tuple(loops[:most])


def _hot_loop(
    reading: Reading, start: int, end: int, where: Sequence[tuple[SectionReading, int]]
) -> HotLoop:
    lines: dict[int, Line] = {}
    spent: dict[int | None, tuple[float, float]] = {}
    for section, _ in where:
        inside = {at: line for at, line in section.lines.items() if start <= at < end}
        spent[section.operator] = (_total(inside.values()).cycles.total, section.cycles.total)
        for at, line in inside.items():
            lines[at] = lines[at] + line if at in lines else line
    function = reading.program.function_at(start)
    order = sorted(spent, key=lambda operator: -spent[operator][0])
    return HotLoop(
        function.name if function is not None else f"{start:#x}",
        start,
        end,
        sum(entries for _, entries in where),
        lines[start].executions,
        tuple(lines[at] for at in sorted(lines)),
        MappingProxyType({operator: _part(*spent[operator]) for operator in order}),
        _part(_total(lines.values()).cycles.total, reading.cycles.total),
    )


def _part(cycles: float, whole: float) -> float:
    return cycles / whole if whole else 0.0


def _loops(section: SectionReading, program: Program) -> Iterator[tuple[int, int, int]]:
    """Start, end and entries of each loop that holds no other one.

    It is begun as often as its first instruction runs without a branch back, or, where it is
    entered in its middle, as it is left at its end.
    """
    ends: dict[int, int] = {}
    backwards: dict[int, int] = {}
    left: dict[int, int] = {}
    for address, line in section.lines.items():
        target = line.instruction.target
        if target is None or target > address or not line.taken or line.instruction.is_call:
            continue
        same_function = program.function_at(target) == program.function_at(address)
        if target not in section.lines or not same_function:
            continue
        if line.instruction.end > ends.get(target, 0):
            ends[target] = line.instruction.end
            left[target] = line.executions - line.taken
        backwards[target] = backwards.get(target, 0) + line.taken
    for start, end in ends.items():
        if not any(start <= other < ends[other] <= end and other != start for other in ends):
            begun = section.lines[start].executions - backwards[start]
            yield start, end, max(begun, left[start])
