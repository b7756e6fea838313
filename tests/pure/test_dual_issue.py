"""Cycles of the dual-issue cores: answers of documents, of measurements on silicon and of LLVM's
llvm-mca 19, whose figures stand here with the command that gave them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from toolchain.cycles.cores import cortex_m7, cortex_m55, cortex_m85
from toolchain.cycles.dual_issue import DualIssueCore, Timing, form_of, timing_of_instruction
from toolchain.cycles.instruction import Instruction, parse_instruction

M7, M55, M85 = cortex_m7.TIMING, cortex_m55.TIMING, cortex_m85.TIMING
CORES = pytest.mark.parametrize("core", [M7, M55, M85], ids=lambda core: core.name)


def block(text: str) -> tuple[Instruction, ...]:
    """Instructions, one a line, of 16 bits where the mnemonic ends in `.n`."""
    found: list[Instruction] = []
    address = 0x1000
    for line in text.split(";"):
        plain = line.strip()
        size = 2 if plain.partition(" ")[0].endswith(".n") else 4
        found.append(parse_instruction(address, size, plain))
        address += size
    return tuple(found)


def a_turn(core: DualIssueCore, text: str) -> float:
    """Cycles of a turn of a loop."""
    return sum(core.block_cycles(block(text), repeats=True))


# jnk0le/random, "pipeline cycle test/doc/cortex_m7.md", measured on an STM32H743 with DWT.CYCCNT.
_SILICON_M7 = {
    # "all multiply accumulates can be chained on accumulator dependency each cycle"
    "smlad r0, r1, r2, r0": 1,
    "smlad r0, r1, r2, r0; smlad r3, r1, r2, r3": 2,
    # "all multiplications ... have 1 additional cycle of result latency"
    "mul r0, r0, r1": 2,
    # "can't consume ldr result from previous cycle", but one of a cycle earlier
    "ldr r0, [r1]; smlad r3, r0, r2, r3": 2,
    # "word loads can be consumed by late ALU in next cycle"; bytes a cycle later
    "ldr r0, [r1]; eor r2, r2, r0": 1,
    "ldrb r0, [r1]; eor r2, r2, r0": 2,
    # an operand that is shifted is read a cycle earlier
    "ldr r0, [r1]; eor r2, r2, r0, lsl #3": 2,
    # "two loads can be dual issued if each one is targeting different bank (even and odd words)"
    "ldr r0, [r1]; ldr r2, [r1, #4]": 1,
    "ldr r0, [r1]; ldr r2, [r1, #8]": 2,
    "ldr r0, [r1], #4; ldr r2, [r3], #4": 1,
    # "cannot dual issue two stores", "can be dual issued with load"
    "str r0, [r1]; str r2, [r1, #4]": 2,
    "ldr r0, [r1]; str r2, [r3]": 1,
    # "can't dual issue with stores" (multiplication)
    "smlad r0, r1, r2, r0; str r3, [r4]": 2,
    # "takes ceil(regnum/2) cycles", "cannot dual issue with preceding or following instructions"
    "ldmia r0!, {r1, r2, r3, r4}": 2,
    "ldmia r0!, {r1, r2, r3}": 2,
    "ldrd r2, r3, [r1], #8": 1,
    "ldrd r2, r3, [r1], #8; eor r4, r4, r5": 2,
    "push {r4, r5, r6, r7, lr}": 3,
    # bitfield and DSP instructions "cannot dual issue wrt each other", and come first
    "sxtb16 r0, r1; sxtb16 r2, r3": 2,
    "uxtb r0, r1; eor r2, r2, r3": 1,
    # "multiply accumulates can be pipelined every cycle but at least 3 must be interleaved"
    "vfma.f32 s0, s1, s2": 3,
    "vfma.f32 s0, s1, s2; vfma.f32 s3, s1, s2; vfma.f32 s4, s1, s2": 3,
    # add and mov that come first feed an instruction of the same cycle
    "add r0, r1, r2; eor r3, r3, r0": 1,
}


@pytest.mark.parametrize("text", _SILICON_M7)
def test_a_cortex_m7_takes_what_was_measured(text: str) -> None:
    assert a_turn(M7, text) == _SILICON_M7[text]


def test_division_stalls_a_cortex_m7() -> None:
    """Its model's text: divides stall for their latency (7) and are issued alone."""
    assert a_turn(M7, "sdiv r0, r1, r2; eor r3, r3, r4") == 8


# Vector instructions: a beat is a cycle, two to an instruction and pipe; what goes to another pipe
# overlaps. Figures: the diagrams in the text of ARMScheduleM55.td.
_BEATS = {
    # LD/ST: VLDR VLDR . VSTR VSTR ; INTEGER: . VADD VADD ; FP/MUL: . . VMUL VMUL
    "vldrw.u32 q0, [r0]; vadd.i32 q1, q2, q3; vmul.i32 q4, q5, q5; vstrw.32 q6, [r1]": 5,
    # loads cannot overlap: LD/ST VLDR VLDR VLDRB VLDRB VSTR VSTR, INTEGER VADD VADD
    "vldrw.u32 q0, [r0]; vldrb.u8 q1, [r1]; vadd.i32 q2, q3, q4; vstrw.32 q5, [r2]": 6,
    "vldrb.u8 q0, [r0], #16; vmladava.s8 r2, q1, q2": 2,
    "vldrb.u8 q0, [r0], #16; vmladava.s8 r2, q1, q2; vldrb.u8 q3, [r1], #16; "
    "vmladava.s8 r4, q1, q2": 4,
    "vmladava.s8 r2, q0, q1; vmladava.s8 r4, q0, q1; vmladava.s8 r6, q0, q1": 6,
}


@pytest.mark.parametrize("text", _BEATS)
def test_beats_of_vector_instructions_overlap_on_a_cortex_m55(text: str) -> None:
    assert a_turn(M55, text) == _BEATS[text]


def test_a_low_overhead_loop_ends_for_nothing() -> None:
    for core in (M55, M85):
        body = "vldrb.u8 q0, [r0], #16; vmladava.s8 r2, q0, q1"
        end = block(f"{body}; le lr, 1000")[-1]
        assert a_turn(core, f"{body}; le lr, 1000") == a_turn(core, body)
        assert core.taken_cycles(end) == 0


def test_a_cortex_m55_issues_two_of_16_bits_only() -> None:
    """ARMScheduleM55.td: "two 16-bit T1 instructions providing one is one of ... ADDri"."""
    assert a_turn(M55, "adds.n r0, r0, #1; adds.n r1, r1, r2") == 1
    assert a_turn(M55, "adds.n r3, r3, r2; adds.n r1, r1, r2") == 2
    assert a_turn(M55, "add.w r0, r0, #1; add.w r1, r1, r2") == 2


def test_a_predicted_branch_costs_its_slot_and_a_wrong_guess_once() -> None:
    """A loop of n turns: n - 1 times taken, as predicted; once not."""
    loop = block("subs.n r6, #1; bne.n 0")
    branch = parse_instruction(0x1002, 2, "bne.n 1000 <loop>")
    turn = sum(M7.block_cycles((loop[0], branch), repeats=True)) + M7.taken_cycles(branch)
    assert turn == 1
    leaving = sum(M7.block_cycles((loop[0], branch), repeats=True))
    assert leaving == turn + M7.branches.mispredicted
    assert M55.taken_cycles(branch) == 3
    back = parse_instruction(0x1002, 2, "bx lr")
    assert [core.taken_cycles(back) for core in (M7, M55, M85)] == [0, 3, 0]
    table = parse_instruction(0x1002, 4, "tbb [pc, r0]")
    assert [core.taken_cycles(table) for core in (M7, M55, M85)] == [8, 3, 5]
    onward = parse_instruction(0x1002, 2, "bne.n 1010 <on>")
    assert sum(M7.block_cycles((loop[0], onward), repeats=True)) == 1


# jnk0le/random, "pipeline cycle test/doc/cortex_m85.md" (RA8D1) and ARMScheduleM85.td.
_SILICON_M85 = {
    "smlad r0, r1, r2, r0": 1,
    # "effective load to use latency for ldr is 0 cycle into the EX3 stage"; 2 where it is chased
    "ldr r0, [r1]; smlad r3, r0, r2, r3": 1,
    "ldr r0, [r0]": 2,
    # LDRD dual issues; LDM does not
    "ldrd r0, r1, [r2]; add.w r3, r4, #1": 1,
    "ldmia r0!, {r1, r2, r3, r4}; add.w r5, r6, #1": 3,
    # "slot 0" instructions are not issued together
    "uxtb r0, r1; uxtb r2, r3": 2,
    # "cannot dual issue two fp arithmetic instructions"
    "vadd.f32 s0, s1, s2; vadd.f32 s3, s4, s5": 2,
    # ARMScheduleM85.td: fused multiply-accumulate of latency 4, its accumulator read 2 later
    "vfma.f32 s0, s1, s2": 2,
    # loads and stores have pipes of their own, unlike Cortex-M55's
    "vldrw.u32 q0, [r0]; vadd.i32 q1, q2, q3; vmul.i32 q4, q5, q5; vstrw.32 q6, [r1]": 4,
    "vldrb.u8 q0, [r0], #16; vmladava.s8 r2, q1, q2": 2,
    "vmladava.s8 r2, q0, q1; vmladava.s8 r4, q0, q1": 4,
}


@pytest.mark.parametrize("text", _SILICON_M85)
def test_a_cortex_m85_takes_what_was_measured(text: str) -> None:
    assert a_turn(M85, text) == _SILICON_M85[text]


# Loops of our kernels and others, each a file x.s of its lines, `.n` and the target left out:
#   llvm-mca-19 -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m7 -iterations=1000 x.s
#   llvm-mca-19 -mtriple=thumbv8.1m.main-none-eabihf -mcpu=cortex-m55 (or m85) -iterations=1000 x.s
# cycles by 1000. scripts/renew_core_tables.py --compare does so for every loop of a firmware.
_LLVM = {
    "cortex-m7": {
        "ldrd r8, r9, [r0], #8; ldr.w r7, [ip], #4; smlad r1, lr, r8, r1; smlad r6, lr, r9, r6; "
        "subs.n r2, #1; smlad r5, r7, r8, r5; smlad r4, r7, r9, r4; mov.n lr, r7; bne.n 1426": 7,
        "subs.n r2, #1; ldr.w fp, [r3]; ldr.w r1, [sl, #4]!; smlad r0, fp, r1, r0; "
        "ldr.w fp, [r3, r6]; add.w r3, r3, #4; smlad r9, fp, r1, r9; bne.n 1aac": 6,
        "sbfx r4, r0, #0, #1; subs.n r3, #1; and.w r4, r4, r5; eor.w r0, r4, r0, lsr #1; "
        "bne.n 3a70": 4,
        "mov.w sl, ip, asr #31; umull r2, r1, ip, r7; adds.w r2, r2, #1073741824; "
        "mla r1, r7, sl, r1; mov.w sl, #0; adc.w r1, r1, #0; lsrs.n r2, r2, #31; "
        "orr.w r2, r2, r1, lsl #1; mov.w r1, #1073741824; rsb r2, r2, #536870912; "
        "smlal r1, sl, ip, r2; mov.w r1, r1, lsr #31; orr.w r1, r1, sl, lsl #1; "
        "add.w ip, ip, r1, lsl #2": 14,
    },
    "cortex-m55": {
        "ldr.w r3, [r0], #4; uxtb.n r2, r5; ldr.w r7, [r1], #4; lsls.n r3, r3, #1; "
        "lsl.w ip, r6, r2; lsrs.n r5, r5, #8; smmla r3, r3, r7, ip; asrs.n r3, r2; "
        "ssat r3, #8, r3, asr #1; strb.w r3, [r4], #1": 12,
        "vaddva.s8 r6, q0; vldrb.u8 q1, [r2], #16; vmlava.s8 r8, q0, q1; "
        "vldrb.u8 q2, [r1], #16; vmlava.s8 r10, q0, q2; vldrb.u8 q0, [r3], #16": 6,
        "vldrb.s32 q0, [r0], #124; vmul.i32 q0, q0, q3; vadd.i32 q2, q2, q0; "
        "vldrb.s32 q1, [r1], #124; vmul.i32 q1, q1, q3; vadd.i32 q4, q4, q1": 8,
    },
    "cortex-m85": {
        "vldrb.s32 q0, [r0], #124; vmul.i32 q0, q0, q3; vadd.i32 q2, q2, q0; "
        "vldrb.s32 q1, [r1], #124; vmul.i32 q1, q1, q3; vadd.i32 q4, q4, q1": 8,
    },
}


@CORES
def test_kernels_take_what_llvm_mca_says(core: DualIssueCore) -> None:
    for text, cycles in _LLVM[core.name].items():
        assert a_turn(core, text) == cycles, text


# --- Any block ------------------------------------------------------------------------------------


def _random_block(core: DualIssueCore, dice: random.Random) -> tuple[Instruction, ...]:
    examples = _examples(core)
    return tuple(dice.choice(examples) for _ in range(dice.randint(1, 24)))


def _examples(core: DualIssueCore) -> list[Instruction]:
    texts = [
        line
        for group in (_SILICON_M7, _SILICON_M85, _BEATS)
        for text in group
        for line in text.split("; ")
    ]
    found = [parse_instruction(0, 4, text) for text in texts]
    return [each for each in found if core is not M7 or not _vector(each)]


def _vector(instruction: Instruction) -> bool:
    return any(operand.startswith("q") for operand in instruction.operands)


@CORES
def test_any_block_takes_its_slots_and_its_chain_at_least_and_appending_adds(
    core: DualIssueCore,
) -> None:
    dice = random.Random(17)
    for _ in range(60):
        run = _random_block(core, dice)
        timings = [timing_of_instruction(each, core.table, core.rules) for each in run]
        slots = sum(each.form.slots for each in timings) / 2
        once = core.block_cycles(run, repeats=False)
        assert len(once) == len(run)
        assert sum(once) >= slots
        assert sum(once) >= _longest_chain(core, timings)
        assert sum(core.block_cycles(run[:-1], repeats=False)) <= sum(once)
        turn = sum(core.block_cycles(run, repeats=True))
        assert turn >= slots
        assert turn >= sum(e.form.issue_cycles for e in timings if e.form.issue_cycles > 1)


def _longest_chain(core: DualIssueCore, timings: Sequence[Timing]) -> int:
    """Cycles until the last instruction of the longest chain of results and their readers can be
    issued, on a core without end of slots and units."""
    there: dict[str, tuple[int, Timing, int]] = {}
    longest = 0
    for timing in timings:
        start = 0
        for register, advances in timing.reads:
            if register in there:
                issued, producer, latency = there[register]
                more = core.rules.bypass(producer.instruction, timing.instruction, register)
                wait = latency + more - max(advances.values()) - producer.early
                start = max(start, issued + max(wait, 0))
        there |= {register: (start, timing, latency) for register, latency in timing.writes}
        longest = max(longest, start)
    return longest


@CORES
def test_a_chain_takes_the_latency_of_each_link(core: DualIssueCore) -> None:
    chain = block("; ".join(["mul r0, r0, r1"] * 8))
    assert (
        sum(core.block_cycles(chain, repeats=False)) == 7 * 2 + core.rules.open_slot
        if core is not M55
        else 15
    )
    assert sum(core.block_cycles(chain, repeats=True)) == 16


@CORES
def test_a_table_names_each_form_as_its_example_is_read(core: DualIssueCore) -> None:
    path = Path(cortex_m7.__file__).with_name(f"{core.name.replace('-', '_')}.json")
    forms = json.loads(path.read_text(encoding="utf-8"))["forms"]
    assert len(forms) > 500
    for form, (_, example) in forms.items():
        size = 2 if form.partition(" ")[0].endswith(".n") else 4
        if "@" not in form:
            assert form_of(parse_instruction(0, size, example)) == form
    for form in core.table.forms.values():
        assert {name for key in form.units for name in key.split("|")} <= set(core.table.units)
        assert form.slots <= 2


@CORES
def test_the_table_knows_the_forms_that_its_own_names_spell(core: DualIssueCore) -> None:
    """An instruction that no form fits gets a near one: never none."""
    odd = parse_instruction(0, 4, "frobnicate r0, r1")
    assert core.block_cycles((odd,), repeats=False) == (core.rules.open_slot,)
    known = parse_instruction(0, 4, "smlad r0, r1, r2, r3")
    assert form_of(known) in core.table.forms
