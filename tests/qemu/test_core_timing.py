"""Loops that QEMU runs, counted by its plugin, and the cycles that the manuals give for them.

Each loop has its answer for each core, derived by hand from the sentences quoted. A Cortex-M4 runs
them all: what was executed is the same on every core that has the instructions.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.bare import BEGIN, END, traced
from toolchain.boards import as_target, board
from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.memory_system import memory_system
from toolchain.cycles.program import read_program
from toolchain.cycles.reading import Reading, hot_loops, read
from toolchain.device import trace_plugin
from toolchain.device.compiler import find_tool

needs_tools = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
BOARD = "mps2-an386"
TURNS = 100
ALL = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33")
TURN = 3
"""Cycles of SUBS and the BNE that ends each turn, on all four. SUBS 1. BNE, taken: "1 + P" on M3
and M4, P = 1 to an aligned target; "1 or 2" on M0+; "2 cycles taken" after what sets flags on M33.
"""
SAVED_AT_THE_END = {"cortex-m0plus": 1, "cortex-m3": 1, "cortex-m4": 1, "cortex-m33": 2}
"""Of a BNE that is not taken: P on M3 and M4, 1 on M0+; "0 not taken" on M33."""

BODIES: dict[str, tuple[str, dict[str, int], str]] = {
    "empty": ("", dict.fromkeys(ALL, 0), "the branch alone"),
    "smlad": (
        "smlad r1, r2, r3, r1\n" * 8,
        {"cortex-m4": 8, "cortex-m33": 8},
        "M4 table 3-2: SMLAD 1. M33: accumulate dependency can be chained",
    ),
    "dependent loads": (
        "ldr r1, [r4]\nldr r1, [r1]\nldr r1, [r1]\n",
        {"cortex-m0plus": 6, "cortex-m3": 6, "cortex-m4": 6, "cortex-m33": 5},
        "M3, M4 3.3.2: pipelined if the first is not used to compute the address for the next. "
        "M33: load to use latency is 2 cycles, and nothing uses the last one",
    ),
    "independent loads": (
        "ldr r1, [r4]\nldr r2, [r4, #4]\nldr r3, [r4, #8]\nldr r0, [r4, #12]\n",
        {"cortex-m0plus": 8, "cortex-m3": 5, "cortex-m4": 5, "cortex-m33": 4},
        "M3, M4 3.3.2: two for the first, one for each LDR that follows one",
    ),
    "LDM of 4": (
        "ldmia r4, {r0, r1, r2, r3}\n",
        {"cortex-m0plus": 5, "cortex-m3": 5, "cortex-m4": 5, "cortex-m33": 4},
        "table 3-1: 1 + N. M33: exactly x cycles",
    ),
    "LDRD": (
        "ldrd r0, r1, [r4]\nldrd r2, r3, [r4, #8]\n",
        {"cortex-m3": 6, "cortex-m4": 6, "cortex-m33": 4},
        "3.3.2: cannot be pipelined, three cycles. M33: 2 cycles",
    ),
    "stores": (
        "str r1, [r4, #8]\nstr r2, [r4, #12]\n",
        {"cortex-m0plus": 4, "cortex-m3": 2, "cortex-m4": 2, "cortex-m33": 2},
        "3.3.2: STR Rx,[Ry,#imm] is always one cycle",
    ),
    "PUSH and POP": (
        "push {r0, r1, r2}\npop {r0, r1, r2}\n",
        {"cortex-m0plus": 8, "cortex-m3": 8, "cortex-m4": 8, "cortex-m33": 6},
        "table 3-1: 1 + N each. M33: exactly x cycles",
    ),
    "branches not taken": (
        "cmp r4, #0\nbeq never\ncmp r4, #0\nbeq never\n",
        {"cortex-m0plus": 4, "cortex-m3": 4, "cortex-m4": 4, "cortex-m33": 2},
        "table 3-1, c: a single cycle if not taken. M33: 0 not taken",
    ),
    "branches taken": (
        "b 1f\nnop\n.balign 4\n1: nop\nb 2f\nnop\n.balign 4\n2: nop\n",
        {"cortex-m0plus": 6, "cortex-m3": 6, "cortex-m4": 6},
        "1 + P each, 2 on M0+, and NOP 1",
    ),
    "branch to half a word": (
        "b 1f\n.balign 4\nnop\n1: mov.w r0, r1\nnop\n",
        {"cortex-m3": 5, "cortex-m4": 5},
        "P depends on the alignment and width of the target: 2 to a 32-bit one across words",
    ),
    "call and return": (
        "bl called\n",
        {"cortex-m0plus": 5, "cortex-m3": 5, "cortex-m4": 5},
        "M3, M4: BL 1 + 1 and BX to a register 1 + 2. M0+: BL 3, BX 2",
    ),
    "division": (
        "udiv r1, r4, r2\nsdiv r1, r4, r2\n",
        {"cortex-m3": 14, "cortex-m4": 14},
        "table 3-1: 2 to 12, taken as 7",
    ),
    "float additions": (
        "vadd.f32 s0, s0, s1\n" * 4,
        {"cortex-m4": 7},
        "M4 table 7-1: 1; 7.2.3: one longer if consumed by the following one, as 3 of 4 are",
    ),
    "float multiply-accumulates": (
        "vmla.f32 s0, s1, s2\n" * 4,
        {"cortex-m4": 12},
        "M4 table 7-1: 3; 7.2.3: the addend is consumed one cycle later",
    ),
    "address just computed": (
        "adds r1, r4, #4\nldr r2, [r1]\n",
        {"cortex-m0plus": 3, "cortex-m3": 4, "cortex-m4": 4, "cortex-m33": 2},
        "M3, M4 3.3.2: stalls the pipeline for an additional cycle",
    ),
}
CASES = [(name, core) for name, (_, answers, _) in BODIES.items() for core in answers]


def _loop(index: int, body: str) -> str:
    lines = "".join(f"  {line}\n" for line in body.splitlines())
    return (
        f"  mov r5, #{TURNS}\n  b loop_{index}\n  .balign 4\nloop_{index}:\n{lines}"
        f"  subs r5, #1\n  bne loop_{index}\nafter_{index}:\n"
    )


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Reading]:
    """All loops in one program, run once, as each of the cores."""
    why = trace_plugin.unavailable()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("bench")
    loops = "".join(_loop(index, body) for index, (body, _, _) in enumerate(BODIES.values()))
    start = "  ldr r4, =data\n  str r4, [r4]\n"
    after = (
        "  .balign 4\n  .thumb_func\ncalled:\n  bx lr\n"
        "  .bss\n  .balign 8\ndata: .skip 16\n  .text\n"
    )
    found = traced(board(BOARD), start + BEGIN + loops + END + "never:\n", folder, after=after)
    program = read_program(folder / "bare.elf", find_tool("objdump"))
    read_as = {}
    for core in ALL:
        timing = timing_of(core)
        assert timing is not None
        read_as[core] = read(found.trace, program, timing)
    return read_as


@needs_tools
@pytest.mark.parametrize(("name", "core"), CASES)
def test_the_model_gives_what_the_manual_states(
    readings: Mapping[str, Reading], name: str, core: str
) -> None:
    _, answers, why = BODIES[name]
    index = list(BODIES).index(name)
    functions = readings[core].functions
    cycles = functions[f"loop_{index}"].cycles.core
    if name == "call and return":
        cycles += functions["called"].cycles.core
    assert cycles == TURNS * (answers[core] + TURN) - SAVED_AT_THE_END[core], why


@needs_tools
def test_loops_are_found_with_their_turns(readings: Mapping[str, Reading]) -> None:
    loops = hot_loops(readings["cortex-m4"], len(BODIES))
    assert {loop.function for loop in loops} == {f"loop_{i}" for i in range(len(BODIES))}
    assert all((loop.iterations, loop.entries) == (TURNS, 1) for loop in loops)
    assert [loop.cycles.total for loop in loops] == sorted(
        (loop.cycles.total for loop in loops), reverse=True
    )
    division = next(i for i, name in enumerate(BODIES) if name == "division")
    assert loops[0].function == f"loop_{division}"
    assert [line.instruction.mnemonic for line in loops[0].lines] == ["udiv", "sdiv", "sub", "b"]
    assert loops[0].lines[-1].taken == TURNS - 1


@needs_tools
@pytest.mark.parametrize(
    ("line", "prefetch", "measured", "short_of_it"),
    [
        ("nop", True, 5195 / 4096, 0.02),
        ("nop", False, 6220 / 4096, 0.02),
        ("add.w r1, r1, #0", False, 323 / 100, 0.08),
    ],
)
def test_straight_code_waits_for_flash_as_it_does_on_silicon(
    line: str, prefetch: bool, measured: float, short_of_it: float, tmp_path: Path
) -> None:
    """Cycles an instruction of code that no cache holds, measured on an STM32G474 with 4 wait
    states and two banks (github.com/studyztp/gem5 at 143f0ab1,
    microbenchmarks/art_vs_noart_comparison.md): 4 turns of 1,024 NOPs, twice what the cache
    holds, and 100 additions with it off; call and return are in the figures. An STM32L476 at 80
    MHz has the same accelerator, and as many wait states.
    """
    why = trace_plugin.unavailable()
    if why:
        pytest.skip(why)
    found, count = board(BOARD), 2048
    target, timing = as_target("stm32l476"), timing_of("cortex-m4")
    assert timing is not None
    memory = memory_system(found.memories, target.memories, target.caches)
    regions = tuple(
        replace(region, timing=replace(region.timing, prefetch=prefetch))
        for region in memory.regions
    )
    memory = replace(memory, regions=regions)
    after = f"  .balign 8\n  .thumb_func\nstraight:\n  .rept {count}\n  {line}\n  .endr\n  bx lr\n"
    body = BEGIN + "  bl straight\n" + END
    trace = traced(found, body, tmp_path, memory, after).trace
    program = read_program(tmp_path / "bare.elf", find_tool("objdump"))
    each = read(trace, program, timing, memory).cycles.total / count
    assert measured * (1 - short_of_it) < each < measured
