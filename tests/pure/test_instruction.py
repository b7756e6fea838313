"""Dataflow of instructions as objdump prints them, after the Armv8-M manual (DDI 0553)."""

from __future__ import annotations

import re

import pytest

from toolchain.cycles.instruction import KNOWN, parse_instruction
from toolchain.cycles.program import parse_program

FLOW = """
push {r4, r5, lr}                | push    | r4 r5 lr sp       | sp
pop {r4, pc}                     | pop     | sp                | r4 pc sp
ldr r4, [pc, #36] @ (6c <a+0x8>) | ldr     | pc                | r4
ldrb.w r1, [r0, #1]!             | ldrb    | r0                | r0 r1
ldr.w r3, [r1], #4               | ldr     | r1                | r1 r3
ldr.w r3, [r1, r2, lsl #2]       | ldr     | r1 r2             | r3
ldr pc, [r0, r1, lsl #2]         | ldr     | r0 r1             | pc
str.w r0, [sl, r1]               | str     | r0 r10 r1         |
strd r4, r5, [sp, #-16]!         | strd    | r4 r5 sp          | sp
ldrd r2, r3, [r1], #8            | ldrd    | r1                | r1 r2 r3
ldmia.w r1!, {r4, r5, r6}        | ldmia   | r1                | r1 r4 r5 r6
ldmia.w r1, {r1, r2}             | ldmia   | r1                | r1 r2
stmia r2!, {r0, r3}              | stmia   | r0 r2 r3          | r2
strexb r0, r1, [r2]              | strexb  | r1 r2             | r0
adds r3, #1                      | add     | r3                | r3 flags
add.w r4, r3, ip, lsl #2         | add     | r3 r12            | r4
movs r3, #0                      | mov     |                   | r3 flags
movt r0, #5                      | movt    | r0                | r0
bfi r0, r1, #2, #3               | bfi     | r0 r1             | r0
adcs r0, r1                      | adc     | r0 r1 flags       | r0 flags
negs r0, r1                      | neg     | r1                | r0 flags
lsls r0, r1                      | lsl     | r0 r1             | r0 flags
lsls r0, r1, #2                  | lsl     | r1                | r0 flags
mul.w r0, r1, r2                 | mul     | r1 r2             | r0
smlad r2, r3, r4, r2             | smlad   | r2 r3 r4          | r2
smlal r0, r1, r2, r3             | smlal   | r0 r1 r2 r3       | r0 r1
umull r0, r1, r2, r3             | umull   | r2 r3             | r0 r1
uadd8 r0, r1, r2                 | uadd8   | r1 r2             | r0 ge
sel r0, r1, r2                   | sel     | r1 r2 ge          | r0
cmp.w r3, #600 @ 0x258           | cmp     | r3                | flags
tst r0, r1                       | tst     | r0 r1             | flags
itte le                          | itte    | flags             |
movle r0, r1                     | mov     | r1 flags          | r0
addle r0, #1                     | add     | r0 flags          | r0
cset r0, ne                      | cset    | flags             | r0
lsll r0, r1, #4                  | lsll    | r0 r1             | r0 r1
bne.n 4c <a+0x8>                 | b       | flags             | pc
bls.n 4c <a+0x8>                 | b       | flags             | pc
bl 100 <f>                       | bl      |                   | lr pc
blx r3                           | blx     | r3                | lr pc
bx lr                            | bx      | lr                | pc
cbz r0, 44 <a>                   | cbz     | r0                | pc
tbb [pc, r0]                     | tbb     | pc r0             | pc
dls lr, r7                       | dls     | r7                | lr
le lr, 6e0 <f>                   | le      | lr                | lr pc
wlstp.8 lr, r5, 2ac <f>          | wlstp   | r5                | lr pc
letp lr, 2a0 <f>                 | letp    | lr                | lr pc
msr BASEPRI, r0                  | msr     | r0                |
mrs r0, PRIMASK                  | mrs     |                   | r0
vmrs APSR_nzcv, fpscr            | vmrs    | fpscr             | flags
vcmpe.f32 s15, s14               | vcmpe   | s15 s14           | fpscr
vmla.f32 s0, s1, s2              | vmla    | s0 s1 s2          | s0
vmullt.f32 s0, s1, s2            | vmul    | s1 s2 flags       | s0
vcvtle.f32.s32 s15, s15          | vcvt    | s15 flags         | s15
vldr s14, [pc, #156]             | vldr    | pc                | s14
vldmia r0!, {s4-s6}              | vldmia  | r0                | r0 s4 s5 s6
vpush {d8-d9}                    | vpush   | s16 s17 s18 s19 sp | sp
vmov r0, r1, d8                  | vmov    | s16 s17           | r0 r1
vmov d8, r0, r1                  | vmov    | r0 r1             | s16 s17
vmov s15, r0                     | vmov    | r0                | s15
vldrw.u32 q0, [r1], #16          | vldrw   | r1                | r1 s0 s1 s2 s3
vldrbt.u8 q0, [r0, #0]           | vldrb   | r0 p0             | s0 s1 s2 s3
vldrw.u32 q0, [q1, #4]           | vldrw   | s4 s5 s6 s7       | s0 s1 s2 s3
vstrb.8 q0, [r0], #16            | vstrb   | r0 s0 s1 s2 s3    | r0
vmlava.s8 lr, q0, q1             | vmlava  | lr s0 s1 s2 s3 s4 s5 s6 s7 | lr
vmlaldav.s16 r0, r1, q0, q0      | vmlaldav | s0 s1 s2 s3      | r0 r1
vmullt.s8 q0, q1, q1             | vmullt  | s4 s5 s6 s7       | s0 s1 s2 s3
vpt.s8 le, q0, q0                | vpt     | s0 s1 s2 s3       | p0
vctp.8 r0                        | vctp    | r0                | p0
vpsel q0, q1, q1                 | vpsel   | s4 s5 s6 s7 p0    | s0 s1 s2 s3
vmov q0[2], q0[0], r1, r2        | vmov    | r1 r2             | s0 s2
vmov.8 d0[5], r1                 | vmov    | r1 s1             | s1
vmov.s8 r0, d2[3]                | vmov    | s4                | r0
vidup.u8 q0, r2, #1              | vidup   | r2                | r2 s0 s1 s2 s3
"""


@pytest.mark.parametrize("line", FLOW.strip().splitlines())
def test_what_an_instruction_reads_and_writes(line: str) -> None:
    text, mnemonic, reads, writes = (part.strip() for part in line.split("|"))
    instruction = parse_instruction(0x40, 4, text)
    assert instruction.mnemonic == mnemonic
    assert instruction.reads == set(reads.split())
    assert instruction.writes == set(writes.split())
    assert not instruction.unknown


def test_words_that_are_transferred() -> None:
    counts = {
        "ldrb r0, [r1]": 1,
        "ldrd r0, r1, [r2]": 2,
        "pop {r4, r5, pc}": 3,
        "vldmia r0!, {s4-s7}": 4,
        "vpush {d8-d13}": 12,
        "vldr d3, [r0]": 2,
        "vldrw.u32 q0, [r1], #16": 4,
        "vld20.8 {q0, q1}, [r0]": 4,
        "strexb r0, r1, [r2]": 1,
        "add r0, r1": 0,
    }
    assert {text: parse_instruction(0, 4, text).registers for text in counts} == counts


def test_write_back() -> None:
    back = ["ldr.w r3, [r1], #4", "str r3, [r1, #4]!", "push {r0}", "ldmia r1!, {r0}"]
    not_back = ["ldr r1, [r1, #4]", "ldm r1, {r0, r2}", "ldrd r1, r2, [r1, #8]", "ldr r0, [r1, r2]"]
    assert [parse_instruction(0, 4, text).writes_back for text in back] == [True] * 4
    assert [parse_instruction(0, 4, text).writes_back for text in not_back] == [False] * 4


def test_an_address_of_memory() -> None:
    load = parse_instruction(0, 4, "ldr.w r3, [r1, r2, lsl #2]")
    assert (load.address_registers, load.operands) == ({"r1", "r2"}, ("r3", "[r1, r2, lsl #2]"))
    assert parse_instruction(0, 2, "pop {r0}").address_registers == {"sp"}
    assert parse_instruction(0, 2, "ldmia r4!, {r0, r1}").address_registers == {"r4"}


def test_branches() -> None:
    branch = parse_instruction(0x54, 2, "bne.n 4c <scale+0x8>")
    assert (branch.target, branch.condition, branch.is_conditional) == (0x4C, "ne", True)
    assert parse_instruction(0, 2, "cbz r0, 44 <f>").target == 0x44
    assert parse_instruction(0, 4, "bl 100 <f>").is_call
    assert parse_instruction(0, 2, "pop {r4, pc}").is_branch
    assert parse_instruction(0, 4, "ldr.w pc, [r0]").is_branch
    assert not parse_instruction(0, 4, "dls lr, r7").is_branch
    assert not parse_instruction(0, 2, "pop {r4, r5}").is_branch


def test_an_unknown_mnemonic_is_listed_and_raises_nothing() -> None:
    program = parse_program(
        "00000040 <f>:\n"
        "      40:\t1c5b      \tadds\tr3, r3, #1\n"
        "      42:\tf810 1f01 \tfrob.w\tr1, r2\n"
        "      46:\t4770      \tbx\tlr\n"
        "      48:\t00001020 \t.word\t0x00001020\n"
        "\t...\n"
        "00000060 <g>:\n"
        "      60:\tbf00      \tnop\n"
    )
    assert [(i.address, i.mnemonic) for i in program.unknown] == [(0x42, "frob")]
    assert [i.size_bytes for i in program.instructions.values()] == [2, 4, 2, 2]
    assert [(f.name, f.start, f.end) for f in program.functions] == [
        ("f", 0x40, 0x60),
        ("g", 0x60, 0x62),
    ]
    found = program.function_at(0x47)
    assert found is not None and found.name == "f"
    assert program.function_at(0x3F) is None and program.function_at(0x62) is None


def test_mnemonics_that_look_like_others() -> None:
    """`vmull` + `t`, `bl` + `s`, `vmul` + `lt`: each reading is the one that the manual means."""
    assert all(re.fullmatch(r"[a-z]+\d*", name) for name in KNOWN)
    read = {
        text: (instruction.mnemonic, instruction.condition)
        for text in ("bls.n 40 <f>", "bleq 40 <f>", "mls r0, r1, r2, r3", "vcvtt.f32.f16 s0, s1")
        for instruction in [parse_instruction(0, 4, text)]
    }
    assert list(read.values()) == [("b", "ls"), ("bl", "eq"), ("mls", ""), ("vcvtt", "")]
    assert parse_instruction(0, 4, "vaddt.i8 q0, q0, q1").condition == "t"
    assert parse_instruction(0, 4, "vmovlt.s8 q0, q1").mnemonic == "vmovlt"
