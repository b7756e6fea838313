"""A trace made by hand, read as cycles: straight runs, loops, functions, operators, stalls."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest

from toolchain.boards import MemoryTiming
from toolchain.cycles.core_timing import CoreTiming, timing_of
from toolchain.cycles.memory_system import MemorySystem, Region
from toolchain.cycles.program import parse_program
from toolchain.cycles.reading import Cycles, hot_loops, read
from toolchain.cycles.trace import Counts, Section, Trace, Traffic
from toolchain.errors import ResultError
from toolchain.report.annotate import annotated, annotated_json

PROGRAM = parse_program("""
00000100 <outer>:
     100:\t2003      \tmovs\tr0, #3
     102:\tbf00      \tnop
     104:\t2104      \tmovs\tr1, #4
     106:\tbf00      \tnop
     108:\t6813      \tldr\tr3, [r2, #0]
     10a:\t6854      \tldr\tr4, [r2, #4]
     10c:\t3901      \tsubs\tr1, #1
     10e:\td1fb      \tbne.n\t108 <outer+0x8>
     110:\tf000 f802 \tbl\t118 <leaf>
     114:\t3801      \tsubs\tr0, #1
     116:\td1f5      \tbne.n\t104 <outer+0x4>
00000118 <leaf>:
     118:\t4770      \tbx\tlr
     11a:\t0000      \t.short\t0x0000
""")
COUNTS = {
    0x100: Counts(2, 1),
    0x102: Counts(2, 1),
    0x104: Counts(2, 3),
    0x106: Counts(2, 3),
    0x108: Counts(2, 12, traffic={"RAM": Traffic(loads=12)}),
    0x10A: Counts(2, 12),
    0x10C: Counts(2, 12),
    0x10E: Counts(2, 12, taken=9),
    0x110: Counts(4, 3, taken=3),
    0x114: Counts(2, 3),
    0x116: Counts(2, 3, taken=2),
    0x118: Counts(2, 3, taken=3),
}


def trace(*sections: tuple[int | None, dict[int, Counts]]) -> Trace:
    return Trace(tuple(Section(0, index, MappingProxyType(counts)) for index, counts in sections))


def m4() -> CoreTiming:
    timing = timing_of("cortex-m4")
    assert timing is not None
    return timing


def test_cycles_by_line_function_and_operator() -> None:
    reading = read(trace((7, COUNTS), (None, {0x118: Counts(2, 1, taken=1)})), PROGRAM, m4())
    section = reading.operator(7)
    core = {address: line.cycles.core for address, line in section.lines.items()}
    assert core[0x108] == 12 * 2, "LDR 2"
    assert core[0x10A] == 12 * 1, "after an LDR"
    assert core[0x10E] == 12 + 9 * 1, "1, and P = 1 when taken"
    assert core[0x110] == 3 + 3 * 1
    assert core[0x118] == 3 + 3 * 2, "P = 2 to a register"
    assert section.functions["leaf"].cycles == Cycles(9.0)
    assert list(section.functions) == ["outer", "leaf"], "most cycles first"
    assert section.instructions == sum(counts.executions for counts in COUNTS.values())
    assert reading.instructions == section.instructions + 1
    assert reading.functions["leaf"].cycles.core == 9 + 3
    assert reading.cycles.total == section.cycles.total + 3
    with pytest.raises(KeyError):
        reading.operator(8)


def test_sections_of_one_operator_are_added() -> None:
    twice = read(trace((0, COUNTS), (0, COUNTS)), PROGRAM, m4())
    once = read(trace((0, COUNTS)), PROGRAM, m4())
    assert len(twice.sections) == 1
    assert twice.cycles.total == 2 * once.cycles.total


def test_stalls_stand_apart() -> None:
    slow = MemoryTiming(read_cycles=3, width_bytes=4)
    memory = MemorySystem((Region("RAM", 0x2000_0000, 0x1000, slow),))
    line = read(trace((0, COUNTS)), PROGRAM, m4(), memory).operator(0).lines[0x108]
    assert line.cycles == Cycles(core=24.0, fetch=0.0, data=36.0)
    assert line.cycles.total == 60


@pytest.mark.parametrize(
    ("second", "stands_for", "core", "waits"),
    [
        ("RAM", "SRAM1", "cortex-m4", 0),
        ("FLASH", "FLASH", "cortex-m4", 12),
        ("FLASH", "SRAM1", "cortex-m4", 0),
        ("FLASH", "FLASH", "cortex-m3", 12),
        ("FLASH", "FLASH", "cortex-m33", 0),
        ("FLASH", "FLASH", "cortex-m7", 0),
        ("", "FLASH", "cortex-m4", 0),
    ],
)
def test_loads_of_different_memories_do_not_overlap(
    second: str, stands_for: str, core: str, waits: int
) -> None:
    """The second of two loads, 1 cycle after the first, takes 2 where it goes elsewhere."""
    traffic = {second: Traffic(loads=12)} if second else {}
    counts = {**COUNTS, 0x10A: Counts(2, 12, traffic=traffic)}
    memory = MemorySystem(
        (
            Region("FLASH", 0, 0x1000, stands_for=stands_for),
            Region("RAM", 0x2000_0000, 0x1000, stands_for="SRAM1"),
        )
    )
    timing = timing_of(core)
    assert timing is not None
    lines = read(trace((0, counts)), PROGRAM, timing, memory).operator(0).lines
    assert {at: line.cycles.data for at, line in lines.items() if line.cycles.data} == (
        {0x10A: waits} if waits else {}
    )


def test_only_the_innermost_loop_is_hot() -> None:
    reading = read(trace((0, COUNTS)), PROGRAM, m4())
    (loop,) = hot_loops(reading, 5)
    assert (loop.function, loop.start, loop.end) == ("outer", 0x108, 0x110)
    assert (loop.iterations, loop.entries) == (12, 3)
    assert loop.cycles.total == 24 + 12 + 12 + 21
    assert loop.share == loop.operators[0] == loop.cycles.total / reading.cycles.total
    assert hot_loops(reading, 0) == ()


def test_a_loop_of_several_operators_is_one() -> None:
    lone = {0x108: Counts(2, 2), 0x10A: Counts(2, 2), 0x10C: Counts(2, 2)}
    lone[0x10E] = Counts(2, 2, taken=1)
    reading = read(trace((3, lone), (0, COUNTS), (None, {0x100: Counts(2, 1)})), PROGRAM, m4())
    (loop,) = hot_loops(reading, 5)
    assert (loop.iterations, loop.entries) == (12 + 2, 3 + 1)
    assert list(loop.operators) == [0, 3], "most cycles first"
    assert loop.operators[3] == 1.0
    assert loop.cycles.total == 69 + 2 * 5 + 1
    assert loop.lines[-1].taken == 9 + 1


def test_the_text_and_the_json_of_a_loop() -> None:
    loops = hot_loops(read(trace((0, COUNTS)), PROGRAM, m4()), 1)
    text = annotated(loops, {0: "conv_1"})
    lines = text.splitlines()
    assert lines[0].startswith("outer, 0x108 to 0x10e: ") and lines[0].endswith("of all cycles")
    assert lines[1].startswith("  of conv_1 ")
    assert "12 iterations, begun 3 times, 5.75 cycles each" in lines[2]
    assert "waits" not in text
    (load,) = (line for line in lines if "ldr r3, [r2, #0]" in line)
    assert load.split()[0] == "0x108" and load.split()[-2:] == ["12", "2.00"]
    assert max(map(len, lines)) <= 100
    (written,) = json.loads(json.dumps(annotated_json(loops, {0: "conv_1"})))
    assert [operator["name"] for operator in written["operators"]] == ["conv_1"]
    assert sum(i["core_cycles"] for i in written["instructions"]) == written["cycles"] == 69


def test_a_loop_that_waits_shows_it() -> None:
    slow = MemoryTiming(read_cycles=3, width_bytes=4)
    memory = MemorySystem((Region("RAM", 0x2000_0000, 0x1000, slow),))
    text = annotated(hot_loops(read(trace((0, COUNTS)), PROGRAM, m4(), memory), 1), {})
    assert "of operator 0" in text and "3.00 of them waiting for memories" in text
    (load,) = (line for line in text.splitlines() if "ldr r3, [r2, #0]" in line)
    assert load.split()[-2:] == ["2.00", "3.00"]
    assert next(w for w in text.splitlines() if "address" in w).split()[-2:] == ["core", "waits"]
    assert max(map(len, text.splitlines())) <= 100


def test_a_trace_of_another_program_is_refused() -> None:
    with pytest.raises(ResultError, match="0x11a"):
        read(trace((0, {0x11A: Counts(2, 1)})), PROGRAM, m4())
