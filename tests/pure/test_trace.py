"""Traces as the plugin writes them, and the stalls that follow from their counts, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.boards import Cache, Content, Memory, MemoryKind, MemoryTiming
from toolchain.boards.memory import Cached, Replacement
from toolchain.cycles.memory_system import MemorySystem, Region, Stall, memory_system, stands_for
from toolchain.cycles.trace import Counts, Section, TraceFile, Traffic, read_trace
from toolchain.errors import InputError

TEXT = """thimble-trace 1 2
run
section -1 1
8 2 1 0 0 0
section 4 2
10 4 7 2 3 1 1 5 6 1 2 3
14 2 7 7 0 0 0 1 0 0 0 0 1 2 0 1 0 0
end
run
section 4 1
10 4 1 0 0 0
end
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "counts.txt"
    written.write_text(TEXT)
    return written


def test_a_trace_is_read(file: Path) -> None:
    trace = read_trace(file, ("flash", "ram"))
    assert [(s.run, s.operator, s.instructions) for s in trace.sections] == [
        (0, None, 1),
        (0, 4, 14),
        (1, 4, 1),
    ]
    assert trace.sections[1].counts == {
        0x10: Counts(4, 7, 2, 3, 1, {"ram": Traffic(5, 6, 1, 2, 3)}),
        0x14: Counts(2, 7, 7, 0, 0, {"flash": Traffic(1), "ram": Traffic(2, 0, 1)}),
    }
    assert trace.operators()[4].counts[0x10] == Counts(
        4, 8, 2, 3, 1, {"ram": Traffic(5, 6, 1, 2, 3)}
    )
    assert trace.run(-1).whole.instructions == 1
    doubled = trace.sections[1].counts[0x14] + trace.sections[1].counts[0x10]
    assert doubled.traffic == {"flash": Traffic(1), "ram": Traffic(7, 6, 2, 2, 3)}


def test_a_trace_that_grew_is_read_on(file: Path) -> None:
    whole = read_trace(file, ("flash", "ram"))
    first, second, _ = (part + "end\n" for part in TEXT.split("end\n"))
    file.write_text(first)
    growing = TraceFile(file, ("flash", "ram"))
    assert growing.read().runs == growing.read().runs == 1
    with file.open("a") as more:
        more.write(second)
    assert growing.read() == whole
    with file.open("a") as more:
        more.write("run\nnonsense\n")
    with pytest.raises(InputError, match="line 14: a section should begin here"):
        growing.read()


@pytest.mark.parametrize("lines", range(1, TEXT.count("\n")))
def test_a_trace_that_is_cut_off_is_refused(lines: int, file: Path) -> None:
    file.write_text("".join(TEXT.splitlines(keepends=True)[:lines]))
    if lines in (1, 8):  # between runs
        assert read_trace(file, ("flash", "ram")).runs == lines // 8
        return
    with pytest.raises(InputError, match=f"line {lines}: the file is cut off"):
        read_trace(file, ("flash", "ram"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("thimble-trace 1 2", "ELF", "begins with 'ELF'"),
        ("thimble-trace 1 2", "thimble-trace 1 3", "not 'thimble-trace 1 2'"),
        ("run\nsection 4", "rnu\nsection 4", "line 9: a run should begin"),
        ("section -1 1", "section -1 1 5", "line 3: a section should begin"),
        ("section -1 1", "section -1 2", "line 5: 3 numbers"),
        ("8 2 1 0 0 0", "8 2 1 0 0", "line 4: 5 numbers"),
        ("8 2 1 0 0 0", "8 2 1 0 0 x", "line 4: invalid literal"),
        ("10 4 7 2 3 1 1", "10 4 7 2 3 1 2", "line 6: there is no region 2"),
    ],
)
def test_what_is_no_trace_is_refused(old: str, new: str, said: str, file: Path) -> None:
    file.write_text(TEXT.replace(old, new))
    with pytest.raises(InputError, match=said):
        read_trace(file, ("flash", "ram"))


def test_a_missing_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the trace"):
        read_trace(tmp_path / "none")


FLASH = MemoryTiming(read_cycles=5, width_bytes=16, burst_cycles=2, prefetch=True)
PLAIN = MemoryTiming(read_cycles=5, width_bytes=16, burst_cycles=2)
SLOW_RAM = MemoryTiming(read_cycles=3, width_bytes=4, burst_cycles=1, write_cycles=2)


def system(timing: MemoryTiming, *caches: Cache) -> MemorySystem:
    regions = (Region("flash", 0, 0x1000, timing), Region("ram", 0x2000, 0x1000, SLOW_RAM))
    return MemorySystem(regions, caches)


def lines_of(bytes_each: int, *memories: str, back: bool = False) -> Cache:
    held = frozenset({"instructions", "data"})
    return Cache("all", held, memories, bytes_each, 2, 8, "lru", back)


def stall(memory: MemorySystem, counts: Counts, at: int = 0x20) -> Stall:
    return memory.stalls(Section(0, None, {at: counts})).get(at, Stall())


def test_lines_of_instructions_after_a_jump_cost_their_fill() -> None:
    missed = Counts(2, 100, jump_misses=7)
    assert stall(system(FLASH, lines_of(16, "flash")), missed) == Stall(fetch=7 * 5)
    assert stall(system(FLASH, lines_of(32, "flash")), missed) == Stall(fetch=7 * (5 + 2 - 1))
    assert stall(system(FLASH, lines_of(64, "flash")), missed) == Stall(fetch=7 * (5 + 6 - 1))
    assert stall(system(PLAIN, lines_of(8, "flash")), Counts(2, 9, 0, 4)) == Stall(fetch=4 * 5)
    looping = Section(0, None, {0x40: missed, 0x60: Counts(2, 100, 50), 0x7E: Counts(2, 50)})
    found = system(PLAIN, lines_of(64, "flash")).stalls(looping)
    assert found == {0x40: Stall(fetch=7 * (5 + 6 - (100 + 100 + 50) / (50 + 50)))}


@pytest.mark.parametrize(
    ("timing", "cycles", "left"),
    [(PLAIN, None, 5), (FLASH, None, 3), (FLASH, 0.5, 4.5), (FLASH, 0.25, 5), (FLASH, 2, 0)],
)
def test_a_prefetch_leaves_what_the_line_before_did_not_hide(
    timing: MemoryTiming, cycles: float | None, left: float
) -> None:
    """The line before runs 60 instructions, and is left at its end 20 times. The read takes 6
    cycles; a line costs no more than it does alone."""
    counts = {0x10: Counts(2, 30), 0x1E: Counts(2, 30, taken=10), 0x20: Counts(2, 20, 0, 6)}
    by_address = None if cycles is None else {at: cycles * c.executions for at, c in counts.items()}
    memory = system(timing, lines_of(16, "flash"))
    section = Section(0, None, counts)
    found = memory.stalls(section, by_address)
    expected = {0x20: Stall(fetch=6 * left)} if left else {}
    assert found == expected


def test_data() -> None:
    moved = Counts(4, 50, traffic={"ram": Traffic(40, 10, 6, 5, 3)})
    assert stall(system(FLASH), moved) == Stall(data=40 * 3 + 10 * 2)
    through = system(FLASH, lines_of(16, "ram"))
    assert stall(through, moved) == Stall(data=6 * (3 + 3 * 1) + 10 * 2)
    back = system(FLASH, lines_of(16, "ram", back=True))
    assert stall(back, moved) == Stall(data=6 * (3 + 3 * 1) + 3 * 4 * 2)
    assert stall(system(FLASH, lines_of(16, "flash")), moved) == Stall(data=40 * 3 + 10 * 2)
    weights = Counts(4, 50, traffic={"flash": Traffic(40, 0, 10)})
    assert stall(system(FLASH, lines_of(16, "flash")), weights) == Stall(data=50)


def test_a_miss_that_brings_in_a_sector_waits_for_no_more() -> None:
    whole = lines_of(64, "flash")
    sectored = replace(whole, sector_bytes=16)
    weights = Counts(4, 50, traffic={"flash": Traffic(40, 0, 10)})
    assert stall(system(PLAIN, whole), weights) == Stall(data=10 * (5 + 3 * 2))
    assert stall(system(PLAIN, sectored), weights) == Stall(data=10 * 5)
    code = Counts(2, 100, jump_misses=7)
    assert stall(system(PLAIN, sectored), code) == Stall(fetch=7 * 5)
    assert system(PLAIN, sectored).plugin_arguments()[-1] == (
        "cache=data+instructions:64:16:2:8:lru:through:1"
    )


def bank(
    name: str, origin: int, holds: str, timing: MemoryTiming | None = None, flash: bool = False
) -> Memory:
    kind = MemoryKind.FLASH if flash else MemoryKind.RAM
    contents = frozenset(Content(word) for word in holds.split())
    return Memory(name, origin, 0x1000, kind, contents, timing=timing)


EMULATED = (
    bank("SSRAM1", 0, "code weights", flash=True),
    bank("SSRAM23", 0x2000, "data arena"),
    bank("PSRAM", 0x4000, "weights arena"),
)
CHIP = (
    bank("ITCM", 0x100, "code"),
    bank("CCM", 0x300, "arena"),
    bank("SRAM", 0x500, "data arena", SLOW_RAM),
    bank("FLASH", 0x800, "code weights", FLASH, flash=True),
)


def cache(held: Cached, *memories: str, how: Replacement = "lru") -> Cache:
    return Cache("L1", frozenset({held}), memories, 16, 64, 1, how)


def test_banks_stand_for_those_that_hold_the_same() -> None:
    assert [stands_for(b, CHIP).name for b in EMULATED] == ["FLASH", "SRAM", "CCM"]
    assert stands_for(EMULATED[1], CHIP, 0x1000).name == "SRAM"
    roomy = replace(CHIP[1], name="BIG", size_bytes=0x2000)
    assert stands_for(EMULATED[1], (*CHIP, roomy), 0x1001).name == "BIG"
    assert stands_for(EMULATED[1], (*CHIP, roomy), 0x2001).name == "BIG"
    found = memory_system(EMULATED, CHIP, (cache("instructions", "FLASH", how="round robin"),))
    assert [(r.name, r.origin, r.timing) for r in found.regions] == [
        ("SSRAM1", 0, FLASH),
        ("SSRAM23", 0x2000, SLOW_RAM),
        ("PSRAM", 0x4000, MemoryTiming(0, 4)),
    ]
    assert found.plugin_arguments() == (
        "region=0:1000",
        "region=2000:1000",
        "region=4000:1000",
        "cache=instructions:16:16:64:1:roundrobin:through:1",
        "cache=data:16:16:1:1:lru:through:1",
        "cache=instructions:4:4:1:1:lru:through:2",
    )
    with_data = memory_system(EMULATED, CHIP, (cache("data", "FLASH", "SRAM", "ITCM"),))
    assert with_data.cache_of("SSRAM1", "data") == with_data.cache_of("SSRAM23", "data")
    assert with_data.caches[0].memories == ("SSRAM1", "SSRAM23")
    assert with_data.plugin_arguments()[3:] == (
        "cache=data:16:16:64:1:lru:through:3",
        "cache=instructions:16:16:1:1:lru:through:1",
        "cache=instructions:4:4:1:1:lru:through:2",
    )


def test_a_board_stands_for_itself() -> None:
    own = memory_system(CHIP, CHIP, ())
    assert [r.name for r in own.regions] == ["ITCM", "CCM", "SRAM", "FLASH"]
    assert [c.name for c in own.caches] == [
        "SRAM: last instructions",
        "FLASH: last instructions",
        "FLASH: last data",
    ]
