"""Cycles of short runs beside what the manuals say of them, sentence by sentence.

The manuals: Cortex-M4 DDI 0439D (tables 3-1, 3-2, 7-1, section 3.3.2), Cortex-M3 100165_0201
(3.3), Cortex-M0+ DDI 0484C (table 3-1). The Cortex-M33's have no timings; its cases are those of
the measurements that its module names.
"""

from __future__ import annotations

import pytest

from toolchain.cycles.core_timing import CoreTiming, timing_of, timings
from toolchain.cycles.instruction import Instruction, parse_instruction


def run(text: str, start: int = 0x100) -> list[Instruction]:
    """Instructions one after the other; `.w` in the mnemonic makes one four bytes wide."""
    found, address = [], start
    for line in text.split("; "):
        word = line.split(" ")[0]
        wide = word.endswith(".w") or word in ("bl", "strd", "ldrd") or word.startswith(("v", "sm"))
        found.append(parse_instruction(address, 4 if wide else 2, line))
        address = found[-1].end
    return found


def core(name: str) -> CoreTiming:
    timing = timing_of(name)
    assert timing is not None
    return timing


def cycles(name: str, text: str, repeats: bool = False) -> float:
    block = run(text)
    return sum(core(name).block_cycles(block, repeats))


M4 = [
    ("smlad r0, r1, r2, r0; smlad r0, r3, r4, r0; smlad r0, r1, r4, r0", 3, "table 3-2: 1 each"),
    ("smull r0, r1, r2, r3; mla r0, r1, r2, r3; umlal r0, r1, r2, r3", 3, "table 3-1: 1 each"),
    ("ldr r0, [r1]; ldr r1, [r2]", 3, "3.3.2: normally three cycles total"),
    ("ldr r0, [r1, r2]; str r0, [r3, #20]", 3, "3.3.2: normally three cycles total"),
    ("ldr r0, [r1, r2]; str r1, [r3, r2]", 3, "3.3.2: normally three cycles total"),
    ("ldr r0, [r1, r5]; ldr r1, [r2]; ldr r2, [r3, #4]", 4, "3.3.2: normally four cycles total"),
    ("ldr r0, [r1]; ldr r2, [r0]", 4, "3.3.2: unless the first computes the next one's address"),
    ("ldr.w r0, [r1], #4; ldr.w r2, [r1], #4", 4, "3.3.2, of the base that the first updates"),
    ("ldr r0, [r1]; adds r2, #1; ldr r3, [r4]", 5, "3.3.2: the *next* instruction is an LDR"),
    ("str r0, [r1, #4]; adds r2, #1", 2, "3.3.2: STR Rx,[Ry,#imm] is always one cycle"),
    ("str r0, [r1, r2]; adds r2, #1", 3, "table 3-1: STR 2"),
    ("str r0, [r1, #4]; ldr r2, [r3]", 3, "3.3.2: nothing can be pipelined after the store"),
    ("ldrd r0, r1, [r2]", 3, "3.3.2: this operation requires three cycles"),
    ("ldr r3, [r4]; ldrd r0, r1, [r2]; ldr r5, [r6]", 7, "3.3.2: nor with those beside it"),
    ("ldmia r0!, {r1, r2, r3}", 4, "3.3.2: a three element LDM takes 2+1+1 or 4 cycles"),
    ("ldmia r0!, {r1, r2, r3, r4}", 5, "table 3-1: 1 + N"),
    ("stmia.w r0!, {r1, r2, r3, r4, r5, r6, r7, r8}", 9, "3.3.2: eight element store, nine"),
    ("push {r4, r5, lr}; pop {r4, r5}", 7, "table 3-1: 1 + N"),
    ("adds r1, #4; ldr r0, [r1]", 4, "3.3.2: an additional cycle for an address just computed"),
    ("adds r1, #4; stmia r1!, {r2, r3}", 5, "3.3.2: any load or store"),
    ("adds r2, #4; ldr r0, [r1]", 3, "3.3.2: not of another register"),
    ("adds r1, #4; movs r2, #0; ldr r0, [r1]", 4, "3.3.2: only of the preceding operation"),
    ("adds r0, #1; it eq; moveq r1, r2", 2, "table 3-1, d: folded onto a 16-bit instruction"),
    ("smlad r0, r1, r2, r0; it eq; moveq r1, r2", 3, "table 3-1, d: not onto a 32-bit one"),
    ("cmp r0, r1; bne 200 <f>", 2, "table 3-1, c: a single cycle if the branch is not taken"),
    ("vadd.f32 s0, s1, s2; vadd.f32 s3, s4, s5", 2, "table 7-1: 1"),
    ("vadd.f32 s0, s1, s2; vadd.f32 s3, s0, s5", 3, "7.2.3: one cycle longer if consumed next"),
    ("vadd.f32 s0, s1, s2; movs r0, #0; vadd.f32 s3, s0, s5", 3, "7.2.3: by the following one"),
    ("vmla.f32 s0, s1, s2; vmla.f32 s3, s4, s5", 6, "table 7-1: 3 each"),
    ("vmla.f32 s0, s1, s2; vmla.f32 s0, s4, s5", 6, "7.2.3: the addend is consumed one later"),
    ("vmla.f32 s0, s1, s2; vmul.f32 s3, s0, s5", 5, "3 + 1 because it is consumed + 1"),
    ("vmul.f32 s0, s1, s2; vmla.f32 s0, s4, s5", 4, "7.2.3: consumed as the addend"),
    ("vdiv.f32 s0, s1, s2; movs r0, #0; movs r1, #0", 3, "7.2.3: integer ones complete beside it"),
    ("vdiv.f32 s0, s1, s2; vadd.f32 s3, s4, s5", 15, "table 7-1: 14, then 1"),
    ("vldr s0, [r0]; vldr d1, [r0]", 5, "table 7-1: 2 and 3"),
    ("vldmia r0!, {d0-d3}; vpush {s4-s6}", 13, "table 7-1: 1 + 2 * N and 1 + N"),
    ("vmov s0, r1; vmov.f32 s1, s2", 3, "table 7-1: 2 from a core register, 1 between floats"),
]


@pytest.mark.parametrize(("text", "answer", "sentence"), M4)
def test_cortex_m4(text: str, answer: float, sentence: str) -> None:
    assert cycles("cortex-m4", text) == answer, sentence


def test_each_branch_of_a_cortex_m4() -> None:
    """1 + P: P is 1 where the address is known, 2 from a register, 3 if loaded."""
    timing = core("cortex-m4")
    target16, target32 = run("adds r0, #1")[0], run("smlad r0, r1, r2, r0", start=0x102)[0]
    aligned32 = run("smlad r0, r1, r2, r0")[0]

    def taken(text: str, target: Instruction | None = None) -> float:
        (branch,) = run(text)
        return sum(timing.block_cycles([branch], False)) + timing.taken_cycles(branch, None, target)

    assert taken("b 100 <f>", target16) == 2
    assert taken("bne 100 <f>", aligned32) == 2
    assert taken("bne 102 <f>", target32) == 3
    assert taken("bl 100 <f>", target16) == 2
    assert taken("bx lr") == 3
    assert taken("bx lr", target32) == 4
    assert taken("ldr pc, [r0]") == 5, "3.3.2: at least five cycles"
    assert taken("pop {r4, pc}") == 1 + 2 + 3, "table 3-1: 1 + N + P"
    assert taken("tbb [pc, r0]") == 6, "3.3.2: at least six cycles"


def test_division_lies_in_the_manuals_range() -> None:
    for name in ("cortex-m3", "cortex-m4"):
        for text in ("sdiv r0, r1, r2", "udiv r0, r1, r2"):
            assert 2 <= cycles(name, text) <= 12, "table 3-1: 2 to 12"


def test_a_loop_meets_its_own_beginning() -> None:
    """A loop that ends in a load and begins with one has a branch between: nothing pipelines."""
    loop = "ldr r0, [r1]; subs r2, #1; bne 100 <f>"
    assert cycles("cortex-m4", loop, repeats=True) == cycles("cortex-m4", loop) == 4
    # The accumulator of the last turn is the addend of the first instruction, 3 cycles on.
    assert cycles("cortex-m4", "vmla.f32 s0, s1, s2; bne 100 <f>", repeats=True) == 4
    # A division under way when the loop begins again holds the FPU up: 1 + 1 + 1 of 14 are over.
    divides = "vdiv.f32 s0, s1, s2; bne 100 <f>"
    assert cycles("cortex-m4", divides) == 2
    assert cycles("cortex-m4", divides, repeats=True) == 2 + 11


def test_models_are_found_by_file_name() -> None:
    for name, timing in timings().items():
        assert timing.name == name
        assert timing.source
    assert {"cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33"} <= set(timings())
    assert timing_of("host") is None


M3 = [
    ("mla r0, r1, r2, r3; mul r0, r1", 3, "table 3-1: 2 and 1"),
    ("ldr r0, [r1]; ldr r1, [r2]", 3, "3.3.2: normally three cycles total"),
    ("ldmia r0!, {r1, r2, r3}", 4, "3.3.2: a three element LDM takes 2+1+1 or 4 cycles"),
    ("ldrd r0, r1, [r2]", 3, "3.3.2: this operation requires three cycles"),
    ("adds r1, #4; ldr r0, [r1]", 4, "3.3.2: an additional cycle"),
    ("umull r0, r1, r2, r3", 5, "table 3-1: 3 to 5, without early termination"),
    ("umlal r0, r1, r2, r3", 7, "table 3-1: 4 to 7, without early termination"),
]


@pytest.mark.parametrize(("text", "answer", "sentence"), M3)
def test_cortex_m3(text: str, answer: float, sentence: str) -> None:
    assert cycles("cortex-m3", text) == answer, sentence


M0_PLUS = [
    ("muls r0, r1; adds r0, #1; movs r2, #0", 3, "1 each"),
    ("ldr r0, [r1]; ldr r1, [r2]", 4, "LDR 2, nothing overlaps"),
    ("strb r0, [r1]; adds r1, #1", 3, "STR 2"),
    ("ldmia r0!, {r1, r2, r3}; push {r4, lr}", 7, "1 + N"),
    ("cmp r0, r1; bne 200 <f>", 2, "B<cc> 1 or 2"),
    ("nop; isb", 4, "1 and 3"),
]


@pytest.mark.parametrize(("text", "answer", "sentence"), M0_PLUS)
def test_cortex_m0plus(text: str, answer: float, sentence: str) -> None:
    assert cycles("cortex-m0plus", text) == answer, sentence


def test_each_branch_of_a_cortex_m0plus() -> None:
    timing = core("cortex-m0plus")

    def taken(text: str) -> float:
        (branch,) = run(text)
        return sum(timing.block_cycles([branch], False)) + timing.taken_cycles(branch)

    assert [taken(t) for t in ("b 100 <f>", "bne 100 <f>", "bx lr", "mov pc, r0")] == [2, 2, 2, 2]
    assert taken("bl 100 <f>") == 3
    assert taken("pop {r4, pc}") == 3 + 2


def test_a_cortex_m0_refills_three_stages() -> None:
    """Table 3-1 of DDI 0432C: B, BX 3, BL 4, POP with PC 4 + N, barriers 4; the rest as an M0+."""
    timing = core("cortex-m0")

    def cycles_of(text: str) -> float:
        (branch,) = run(text)
        return sum(timing.block_cycles([branch], False)) + timing.taken_cycles(branch)

    assert [cycles_of(t) for t in ("b 100 <f>", "bne 100 <f>", "bx lr", "mov pc, r0")] == [3] * 4
    assert cycles_of("bl 100 <f>") == 4
    assert cycles_of("pop {r4, pc}") == 4 + 2
    assert cycles("cortex-m0", "nop; isb") == 5
    assert cycles("cortex-m0", "ldr r0, [r1]; muls r0, r2") == 3


M33 = [
    ("ldr r0, [r1]; adds r2, r0, #1", 3, "load to use latency is 2 cycles"),
    ("ldr r0, [r0]; adds r2, r0, #1", 3, "of the address register, too"),
    ("ldr r0, [r1]; adds r3, #1; adds r2, r0, #1", 3, "so one instruction between hides it"),
    ("ldr r0, [r1]; mla r4, r2, r3, r0", 2, "can be consumed as MAC accumulate dependency in 1"),
    ("ldr r0, [r1]; mla r4, r0, r3, r2", 3, "but not as a factor"),
    ("ldr r0, [r1]; str r0, [r2]", 2, "load to store latency is 1 cycle"),
    ("ldrd r0, r1, [r2]; strd r3, r4, [r2]", 4, "load/store double execute in 2 cycles"),
    ("ldmia r0!, {r1, r2, r3}; push {r4, r5}", 5, "multiple of x registers in exactly x cycles"),
    ("ldrd r0, r1, [r2]; adds r3, r0, #1", 3, "of two words the first arrives a cycle earlier"),
    ("ldrd r0, r1, [r2]; adds r3, r1, #1", 4, "load to use latency of the second"),
    ("smlad r0, r1, r2, r0; smlad r0, r3, r4, r0", 2, "accumulate dependency can be chained"),
    ("smlad r0, r1, r2, r0; smlad r5, r0, r4, r5", 3, "multiply accumulates: 2 cycle latency"),
    ("smlad r0, r1, r2, r0; str r0, [r3]", 2, "can store result from accumulate stage in 1"),
    ("muls r0, r1; movs r2, #0", 3, "muls.n takes a total of 2 cycles"),
    ("add.w r3, r4, r5, ror #24; adds r6, r3, #1", 3, "operand2 shifted reg: 2 cycles latency"),
    ("eors.w r0, r1, #8128; movs r2, #0", 3, "operand2 shifted constant with flags: 2 cycles"),
    ("eors.w r0, r1, #255; movs r2, #0", 2, "a simple constant"),
    ("adds r0, #1; adds r1, #1", 2, "can't dual issue arithmetic+arithmetic"),
    ("adds r0, #1; nop", 1, "nop can dual issue with arithmetic"),
    ("adds r0, #1; nop; nop", 2, "two at a time"),
    ("adds r3, r4; beq 200 <f>", 1, "branch: 0 not taken"),
    ("ldmia r6!, {r0, r1, r2, r3}; bne 200 <f>", 4, "branch can dual issue with load multiple"),
    ("mov r0, r1; it eq; moveq r1, r2", 2, "it can dual issue with preceding instruction"),
    ("vfma.f32 s0, s1, s2; vfma.f32 s3, s4, s5", 4, "no other FP in the following 2 cycles"),
    ("vfma.f32 s0, s1, s2; movs r0, #1; movs r1, #1; vfma.f32 s0, s1, s2", 4, "as measured"),
    ("vfma.f32 s0, s1, s2; movs r0, #1; movs r1, #1; vfma.f32 s4, s3, s0", 5, "4 as multiplicand"),
    ("vldr s0, [r0]; vadd.f32 s1, s0, s2", 2, "vldr has 1 cycle of load to use latency"),
    ("pkhbt.w r0, r1, r2; adds r3, r0, #1", 3, "DSP instructions: 2 cycle result latency"),
    ("uadd8.w r0, r1, r2; smlad r3, r4, r5, r0", 3, "no chaining"),
    ("qsub.w r0, r1, r2; adds r3, #1; adds r4, r0, #1", 3, "hidden by another instruction"),
]


@pytest.mark.parametrize(("text", "answer", "sentence"), M33)
def test_cortex_m33(text: str, answer: float, sentence: str) -> None:
    assert cycles("cortex-m33", text) == answer, sentence


def test_taken_branches_of_a_cortex_m33() -> None:
    """The loops of the measurement, cycles an iteration."""
    timing = core("cortex-m33")
    loops = {
        "subs r7, #1; bne 100 <f>": 1 + 2,
        "subs r7, #1; add r0, r1; bne 100 <f>": 1 + 1 + 1,
        "subs r7, #1; ldmia r6!, {r0, r1, r2, r3}; bne 100 <f>": 1 + 4 + 1,
    }
    for text, answer in loops.items():
        block = run(text)
        taken = timing.taken_cycles(block[-1], block[-2], block[0])
        assert sum(timing.block_cycles(block, True)) + taken == answer, text
