#!/usr/bin/env python3
"""Renews the tables of the dual-issue cores (toolchain/cycles/cores/*.json) from LLVM's scheduling
models, and holds our scoreboard against llvm-mca.

    scripts/renew_core_tables.py [--write] [--compare] [--core NAME] [ELF ...]

Needs Debian's llvm-19 (`apt-get install llvm-19`); users of Thimble never do. The forms measured
are those of the present tables and of the instructions in the ELF files (firmware, static
libraries' objects). Of each form llvm-mca is asked for

- units and cycles: its resource pressure in one run; any one of several where many runs spread it,
- latency of a result: cycles from its issue to that of an instruction which reads the result,
- advance of an operand: the latency of the instruction that made it less the cycles between the
  two issues, for producers of several latencies,
- groups: whether it is issued in the same cycle as another before it and after it. Not on
  Cortex-M55, which issues two 16-bit instructions together and no others (the text of
  ARMScheduleM55.td): the model guesses at what will become 16-bit instructions, and here they are
  known.

`--compare` prints, for the inner loops in the ELF files and for seeded random blocks of their
instructions, cycles by our scoreboard and by llvm-mca. llvm-mca delays an instruction whose result
comes before that of an earlier one (it retires in order, InOrderIssueStage.cpp); no document says
so of these cores, and the comparison gives both figures: ours with that delay, which tests that
the tables were read rightly, and ours without, which is what Thimble reports.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.dual_issue import (
    DualIssueCore,
    Rules,
    Scoreboard,
    Table,
    Timing,
    form_of,
    parts,
    register_tokens,
    timing_of_instruction,
)
from toolchain.cycles.instruction import Instruction, parse_instruction
from toolchain.cycles.program import Program, read_program

CORES = ("cortex-m7", "cortex-m55", "cortex-m85")
TABLES = Path(__file__).resolve().parents[1] / "toolchain" / "cycles" / "cores"

_PRODUCERS = {
    "r": (
        ("1", "mov.w {}, #1"),
        ("load", "ldr.w {}, [r10]"),
        ("ldrb", "ldrb.w {}, [r10]"),
        ("mul", "mul {}, r10, r11"),
        ("vmov", "vmov {}, s30"),
        ("mve", "vmladava.s8 {}, q6, q7"),
    ),
    "s": (
        ("vldr", "vldr {}, [r10]"),
        ("add", "vadd.f32 {}, s30, s31"),
        ("mla", "vmla.f32 {}, s30, s31"),
    ),
    "d": (
        ("vldr", "vldr {}, [r10]"),
        ("add", "vadd.f64 {}, d14, d15"),
        ("mul", "vmul.f64 {}, d14, d15"),
    ),
    "q": (
        ("vldr", "vldrb.u8 {}, [r10]"),
        ("add", "vadd.i32 {}, q6, q7"),
        ("mul", "vmul.i32 {}, q6, q7"),
        ("shift", "vrshl.s32 {}, q6, q7"),
        ("narrow", "vmovnb.i32 {}, q6"),
    ),
}
_CONSUMERS = {
    "r": ("mul r11, {}, r10", "add r11, {}, #1"),
    "s": ("vadd.f32 s31, {}, s30",),
    "d": ("vadd.f64 d15, {}, d14",),
    "q": ("vadd.i32 q7, {}, q6", "vmul.i32 q7, {}, q6"),
    "flags": ("adc r11, r10, #1",),
    "p0": ("vpsel q7, q6, q6",),
}
_BEFORE = ("mov.w r11, #1", "rev.w r11, r10", "vcmp.f32 s30, s31")
_AFTER = ("mov.w r11, #1", "b #8", "str.w r11, [r10]")


@dataclass(frozen=True)
class Region:
    """What llvm-mca says of a run of instructions: the cycle in which each is issued, latency and
    micro-operations of each, and cycles of each unit that each takes."""

    issued: tuple[int, ...]
    latencies: tuple[int, ...]
    slots: tuple[int, ...]
    units: tuple[Mapping[str, float], ...]
    cycles: int


class Mca:
    """llvm-mca for a core."""

    def __init__(self, core: str) -> None:
        found = shutil.which("llvm-mca-19") or shutil.which("llvm-mca")
        if found is None:
            sys.exit("llvm-mca is missing: apt-get install llvm-19")
        triple = "thumbv7em" if core == "cortex-m7" else "thumbv8.1m.main"
        self.command = [found, f"-mtriple={triple}-none-eabihf", f"-mcpu={core}", "-json"]
        self.command.append("-skip-unsupported-instructions=any")

    def run(self, regions: Sequence[Sequence[str]], iterations: int = 1) -> list[Region | None]:
        """Each region, None where an instruction of it is none of this core's."""
        if not regions:
            return []
        lines: list[str] = []
        for number, region in enumerate(regions):
            lines += [f"# LLVM-MCA-BEGIN r{number}", *region, "# LLVM-MCA-END"]
        timeline = ["-timeline", "-timeline-max-cycles=0"] if iterations == 1 else []
        done = subprocess.run(
            [*self.command, f"-iterations={iterations}", *timeline],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:  # it crashes on a few instructions: look for them
            if len(regions) == 1:
                return [None]
            half = len(regions) // 2
            return [*self.run(regions[:half], iterations), *self.run(regions[half:], iterations)]
        data = json.loads(done.stdout)
        names = [_unit_name(name) for name in data["TargetInfo"]["Resources"]]
        found: list[Region | None] = [None] * len(regions)
        for each in data["CodeRegions"]:
            number = int(each["Name"][1:])
            if len(each["Instructions"]) == len(regions[number]):
                found[number] = _region(each, names)
        return found


def _unit_name(name: str) -> str:
    """`M7UnitLoadH` as `LoadH`; llvm-mca prints the number of one of several as a raw byte."""
    plain = re.sub(r"^M\d+Unit", "", name)
    return re.sub(r"[\x00-\x1f]", lambda match: str(ord(match.group(0))), plain)


def _region(data: Mapping[str, object], names: Sequence[str]) -> Region:
    view = data["InstructionInfoView"]["InstructionList"]  # type: ignore[index]
    units: list[dict[str, float]] = [{} for _ in view]
    for use in data["ResourcePressureView"]["ResourcePressureInfo"]:  # type: ignore[index]
        if use["InstructionIndex"] < len(view):
            name = names[use["ResourceIndex"]]
            units[use["InstructionIndex"]][name] = use["ResourceUsage"]
    timeline = data.get("TimelineView", {}).get("TimelineInfo", [])  # type: ignore[attr-defined]
    return Region(
        tuple(each["CycleIssued"] for each in timeline),
        tuple(each["Latency"] for each in view),
        tuple(each["NumMicroOpcodes"] for each in view),
        tuple(units),
        data["SummaryView"]["TotalCycles"],  # type: ignore[index]
    )


# --- Examples -------------------------------------------------------------------------------------


def spelled(instruction: Instruction) -> str:
    """An instruction as LLVM's assembler takes it."""
    text = instruction.text.lower().replace("\t", " ")
    if instruction.target is not None:
        head = text.rpartition(",")[0]
        where = "#-4" if instruction.mnemonic in ("le", "letp") else "#8"
        word = text.split()[0]
        text = f"{head}, {where}" if head else f"{word} {where}"
    return text


def renamed(instruction: Instruction) -> str:
    """An example with another register at each place, so that each can be probed on its own."""
    counts: Counter[str] = Counter()

    def fresh(match: re.Match[str]) -> str:
        name = match.group(0)
        if name in ("sp", "pc", "lr"):
            return name
        letter = "r" if name in ("ip", "fp", "sl", "sb") else name[0]
        counts[letter] += 1
        return f"{letter}{counts[letter] - 1}"

    word, _, rest = spelled(instruction).partition(" ")
    if "{" in rest:
        return f"{word} {rest}"
    return f"{word} " + re.sub(r"\b(r\d+|sp|lr|pc|ip|fp|sl|sb|s\d+|d\d+|q\d+)\b", fresh, rest)


def without_width(text: str) -> str:
    """Some forms LLVM's assembler takes without `.w` only."""
    word, _, rest = text.partition(" ")
    return f"{word.replace('.w', '').replace('.n', '')} {rest}"


_DATA = """and orr eor bic orn add sub rsb adc sbc"""
_MOVES = "mov mvn"
_COMPARES = "cmp cmn tst teq"
_SHIFTS = "lsl lsr asr ror"
_ONE_SOURCE = "clz rbit rev rev16 revsh sxtb sxth uxtb uxth sxtb16 uxtb16"
_EXTEND_AND_ADD = "sxtab sxtah sxtab16 uxtab uxtah uxtab16"
_TWO_SOURCES = """
    sadd8 sadd16 ssub8 ssub16 sasx ssax uadd8 uadd16 usub8 usub16 uasx usax shadd8 shadd16 shsub8
    shsub16 uhadd8 uhadd16 uhsub8 uhsub16 qadd qsub qdadd qdsub qadd8 qadd16 qsub8 qsub16 qasx qsax
    uqadd8 uqadd16 uqsub8 uqsub16 sel usad8 mul smulbb smulbt smultb smultt smulwb smulwt smuad
    smuadx smusd smusdx smmul smmulr sdiv udiv"""
_THREE_SOURCES = """
    mla mls smlabb smlabt smlatb smlatt smlawb smlawt smlad smladx smlsd smlsdx smmla smmlar smmls
    smmlsr usada8"""
_LONG = """
    smull umull smlal umlal umaal smlalbb smlalbt smlaltb smlaltt smlald smlaldx smlsld smlsldx"""
_LOADS = "ldr ldrb ldrh ldrsb ldrsh"
_STORES = "str strb strh"
_SELECTS = "csel csinc csinv csneg"
_VFP_TWO = "vadd vsub vmul vnmul vdiv vmla vmls vnmla vnmls vfma vfms vfnma vfnms vmaxnm vminnm"
_VFP_ONE = "vmov vabs vneg vsqrt vcmp vcmpe vrintz vrintr"
_VECTOR_INT = """
    vadd.i vsub.i vmul.i vqadd.s vqsub.s vhadd.s vhadd.u vrhadd.s vmulh.s vrmulh.s vqdmulh.s
    vqrdmulh.s"""
_VECTOR_ONLY = "vmax.s vmin.s vmax.u vmin.u vabd.s vshl.s vrshl.s vqshl.s vqrshl.s"
_VECTOR_ACCUMULATE = "vmla.s vmla.u vmlas.s vqdmlah.s vqrdmlah.s"
_ACROSS = """
    vmladava.s vmladavax.s vmlava.s vmlava.u vmladav.s vmlav.s vaddva.s vaddva.u vaddv.s vaddv.u
    vabav.s vmaxv.s vminv.s"""
_NARROW = "vmovnb.i vmovnt.i vqmovnb.s vqmovnt.s vqmovunb.s"
_VECTOR_LOADS = """
    vldrb.u8 vldrb.s16 vldrb.u16 vldrb.s32 vldrb.u32 vldrh.u16 vldrh.s32 vldrh.u32 vldrw.u32"""
_VECTOR_STORES = "vstrb.8 vstrb.16 vstrb.32 vstrh.16 vstrh.32 vstrw.32"


def further_examples() -> dict[str, Instruction]:
    """Forms that kernels use, whether or not the ELF files at hand do. What a core has not, LLVM
    refuses."""
    texts: list[tuple[int, str]] = []

    def add(names: str, *patterns: str, sizes: tuple[int, ...] = (4,)) -> None:
        for name in names.split():
            texts.extend((size, pattern.format(name)) for size in sizes for pattern in patterns)

    for setting in ("{}", "{}s"):
        add(_DATA, f"{setting}.w r0, r1, r2", f"{setting}.w r0, r1, #1")
        add(_DATA, *(f"{setting}.w r0, r1, r2, {shift} #3" for shift in _SHIFTS.split()))
        add(_MOVES, f"{setting}.w r0, r1", f"{setting}.w r0, #1")
        add(_SHIFTS, f"{setting}.w r0, r1, #3", f"{setting}.w r0, r1, r2")
    add("adds subs", "{} r0, r1, r2", "{} r0, r1, #1", "{} r0, #9", sizes=(2,))
    add("add sub", "{}w r0, r1, #4000", "{} sp, #16")
    add("ands orrs eors bics adcs sbcs muls mvns", "{} r0, r1", sizes=(2,))
    add("lsls lsrs asrs", "{} r0, r1, #3", "{} r0, r1", sizes=(2,))
    add("movs", "{} r0, r1", "{} r0, #1", sizes=(2,))
    add("mov add", "{} r0, r1", sizes=(2,))
    add("movw movt", "{} r0, #1000")
    add(_COMPARES, "{}.w r0, r1", "{}.w r0, #1", "{}.w r0, r1, lsl #3")
    add("cmp cmn tst", "{} r0, r1", sizes=(2,))
    add("cmp", "{} r0, #1", sizes=(2,))
    add(_ONE_SOURCE, "{}.w r0, r1", "{} r0, r1", "{}.w r0, r1, ror #8")
    add("sxtb sxth uxtb uxth rev rev16", "{} r0, r1", sizes=(2,))
    add(_EXTEND_AND_ADD, "{} r0, r1, r2", "{} r0, r1, r2, ror #8")
    add("sbfx ubfx bfi", "{} r0, r1, #8, #8")
    add("bfc", "{} r0, #8, #8")
    add("ssat usat", "{} r0, #8, r1", "{} r0, #8, r1, asr #1", "{} r0, #8, r1, lsl #1")
    add("ssat16 usat16", "{} r0, #8, r1")
    add("pkhbt", "{} r0, r1, r2", "{} r0, r1, r2, lsl #16")
    add("pkhtb", "{} r0, r1, r2, asr #16")
    add(_TWO_SOURCES, "{} r0, r1, r2")
    add(_THREE_SOURCES, "{} r0, r1, r2, r3")
    add(_LONG, "{} r0, r1, r2, r3")
    addresses = ("[r1]", "[r1, #4]", "[r1, r2]", "[r1, #4]!", "[r1], #4")
    add(_LOADS, *(f"{{}}.w r0, {each}" for each in (*addresses, "[r1, r2, lsl #2]")))
    add(_STORES, *(f"{{}}.w r0, {each}" for each in (*addresses, "[r1, r2, lsl #2]")))
    add("ldr ldrb ldrh str strb strh", *(f"{{}} r0, {e}" for e in addresses[:3]), sizes=(2,))
    add("ldrsb ldrsh", "{} r0, [r1, r2]", sizes=(2,))
    add("ldr", "{} r0, [pc, #8]", sizes=(2, 4))
    pairs = ("[r2]", "[r2, #8]", "[r2, #8]!", "[r2], #8")
    add("ldrd strd", *(f"{{}} r0, r1, {each}" for each in pairs))
    add("ldmia stmia ldmdb stmdb", "{} r0, {{r4, r5}}", "{} r0!, {{r4, r5}}")
    add("push pop", "{} {{r4, r5}}", sizes=(2, 4))
    add("vpush vpop", "{} {{d8, d9}}", "{} {{s16, s17}}")
    add("vldmia vstmia", "{} r0!, {{s0, s1}}", "{} r0, {{s0, s1}}", "{} r0!, {{d0, d1}}")
    add("pld", "{} [r0]", "{} [r0, #4]")
    for letter, kind in (("s", "f32"), ("d", "f64"), ("q", "f32"), ("q", "f16")):
        three = f"{letter}0, {letter}1, {letter}2"
        add(_VFP_TWO, f"{{}}.{kind} {three}")
        add(_VFP_ONE, f"{{}}.{kind} {letter}0, {letter}1")
        add("vfma vfmas vadd vsub vmul", f"{{}}.{kind} q0, q1, r2")
    add("vldr vstr", "{} s0, [r1]", "{} s0, [r1, #4]", "{} d0, [r1]", "{} d0, [r1, #8]")
    add("vmov", "{} r0, s0", "{} s0, r0", "{} r0, r1, d0", "{} d0, r0, r1")
    add("vmov.f32", "{} s0, #1.0", "{} s0, s1")
    add("vcmp.f32 vcmpe.f32", "{} s0, #0.0")
    for kinds in ("f32.s32", "f32.u32", "s32.f32", "u32.f32"):
        add("vcvt", f"{{}}.{kinds} s0, s1", f"{{}}.{kinds} q0, q1")
    add("vmrs", "{} APSR_nzcv, fpscr")
    add("vseleq.f32 vselge.f32", "{} s0, s1, s2")
    for bits in (8, 16, 32):
        add(_VECTOR_INT, f"{{}}{bits} q0, q1, q2", f"{{}}{bits} q0, q1, r2")
        add(_VECTOR_ONLY, f"{{}}{bits} q0, q1, q2", f"{{}}{bits} q0, r1", f"{{}}{bits} q0, q1, #1")
        add(_VECTOR_ACCUMULATE, f"{{}}{bits} q0, q1, r2")
        add("vqdmladh.s vqrdmladh.s vqdmlsdh.s", f"{{}}{bits} q0, q1, q2")
        add(_ACROSS, f"{{}}{bits} r2, q0, q1", f"{{}}{bits} r2, q0")
        add(
            "vmlaldava.s vmlalva.s vaddlva.s",
            f"{{}}{bits} r2, r3, q0, q1",
            f"{{}}{bits} r2, r3, q0",
        )
        add("vmullb.s vmullt.s vmullb.u vqdmullb.s", f"{{}}{bits} q0, q1, q2")
        add("vmovlb.s vmovlt.s vmovlb.u vmovlt.u", f"{{}}{bits} q0, q1")
        add(_NARROW, f"{{}}{bits} q0, q1")
        add("vshrnb.i vshrnt.i vrshrnb.i vqrshrnb.s vqrshrnt.s vqshrnb.s", f"{{}}{bits} q0, q1, #4")
        add("vshr.s vshr.u vrshr.s vshl.i vsli. vsri.", f"{{}}{bits} q0, q1, #1")
        add("vdup.", f"{{}}{bits} q0, r1")
        add("vmov.i", f"{{}}{bits} q0, #1")
        add("vabs.s vneg.s vcls.s vclz.i vmovn.i", f"{{}}{bits} q0, q1")
        add("vcmp.s", f"{{}}{bits} ge, q0, q1", f"{{}}{bits} ge, q0, r1")
        add("vctp.", f"{{}}{bits} r0")
        add("vidup.u vddup.u", f"{{}}{bits} q0, r2, #1")
        add("dlstp. wlstp.", f"{{}}{bits} lr, r0")
        add("vmov.", f"{{}}{bits} q0[0], r1")
        add("vmov.s vmov.u", f"{{}}{bits} r1, q0[0]")
        add("vrev64. vrev32. vrev16.", f"{{}}{bits} q0, q1")
        for base in ("vld2", "vld4", "vst2", "vst4"):
            registers = "q0, q1" if base[-1] == "2" else "q0, q1, q2, q3"
            for part in range(int(base[-1])):
                for end in ("", "!"):
                    add(f"{base}{part}.{bits}", f"{{}} {{{{{registers}}}}}, [r0]{end}")
    add("vmov.32", "{} r0, q0[1]", "{} q0[1], r0")
    add("vmov", "{} q0, q1", "{} q0[2], q0[0], r0, r1", "{} r0, r1, q0[2], q0[0]")
    add("vand vorr veor vbic vorn", "{} q0, q1, q2")
    add("vmvn", "{} q0, q1")
    add("vpsel", "{} q0, q1, q2")
    add("vpnot", "{}")
    add("vfmas.f32 vcmul.f32 vcmla.f32", "{} q0, q1, q2, #0")
    vectors = ("[r1]", "[r1, #16]", "[r1], #16", "[r1, #16]!", "[r1, q1]")
    add(_VECTOR_LOADS, *(f"{{}} q0, {each}" for each in (*vectors, "[r1, q1, uxtw #2]")))
    add(_VECTOR_STORES, *(f"{{}} q0, {each}" for each in (*vectors, "[r1, q1, uxtw #2]")))
    add(_SELECTS, "{} r0, r1, r2, eq")
    add("cset csetm", "{} r0, eq")
    add("lsll asrl lsrl", "{} r0, r1, #3", "{} r0, r1, r2")
    add("sqrshr sqshl uqshl srshr", "{} r0, r1", "{} r0, #3")
    add("sqrshrl sqshll", "{} r0, r1, #64, r2", "{} r0, r1, #3")
    add("dls", "{} lr, r0")
    examples: dict[str, Instruction] = {}
    for size, text in texts:
        instruction = parse_instruction(0, size, text)
        examples.setdefault(form_of(instruction), instruction)
    return examples


def unconditional(text: str, instruction: Instruction) -> str:
    word, _, rest = text.partition(" ")
    if instruction.condition and instruction.mnemonic != "b":
        name, *suffixes = word.split(".")
        word = ".".join([name.removesuffix(instruction.condition), *suffixes])
    return f"{word} {rest}"


def examples_of(programs: Iterable[Iterable[Instruction]]) -> dict[str, Instruction]:
    """An instruction of each form in the programs."""
    found: dict[str, Instruction] = {}
    for program in programs:
        for instruction in program:
            plain = instruction
            if instruction.condition and instruction.target is None:
                text = unconditional(instruction.text, instruction)
                plain = parse_instruction(0, instruction.size_bytes, text)
            if not plain.unknown and plain.mnemonic not in _NO_EXAMPLE and not plain.is_it:
                found.setdefault(form_of(plain), plain)
    return found


_NO_EXAMPLE = frozenset({"vpst", "vpt", "udf", "bkpt", "svc", "bl", "blx"})
"""What cannot stand alone in LLVM's assembler, or is not timed. Core modules time `it`, `vpst`."""


def chosen_spellings(mca: Mca, examples: Mapping[str, Instruction]) -> dict[str, str]:
    """Of each form the first spelling that LLVM takes; forms that it takes in none are left out."""
    tried: list[tuple[str, str]] = []
    for form, example in examples.items():
        plain = renamed(example)
        for text in (
            plain,
            without_width(plain),
            spelled(example),
            without_width(spelled(example)),
        ):
            tried.append((form, text))
    answers = mca.run([[text, _BEFORE[0]] for _, text in tried])
    chosen: dict[str, str] = {}
    for (form, text), answer in zip(tried, answers, strict=True):
        if answer is not None:
            chosen.setdefault(form, text)
    return chosen


# --- Measuring ------------------------------------------------------------------------------------


class Questions:
    """Runs of instructions to be asked in one call of llvm-mca."""

    def __init__(self, mca: Mca) -> None:
        self.mca = mca
        self.regions: list[list[str]] = []
        self.answers: list[Region | None] = []

    def ask(self, *lines: str) -> int:
        self.regions.append(list(lines))
        return len(self.regions) - 1

    def answer(self) -> None:
        self.answers = self.mca.run(self.regions)

    def gap(self, number: int) -> int | None:
        """Cycles between the issue of the first and of the last instruction."""
        region = self.answers[number]
        if region is None or not region.issued:  # LE on Cortex-M85: its latency of -2 is no cycle
            return None
        return region.issued[-1] - region.issued[0]


def _letter(register: str) -> str:
    return register[0] if register[0] in "sdq" and register != "sp" else "r"


def measured(core: str, examples: Mapping[str, Instruction]) -> dict[str, tuple[dict, str]]:
    """Timing of each form by llvm-mca, as the table holds it, and the example that was measured."""
    mca = Mca(core)
    spellings = chosen_spellings(mca, examples)
    producers = _producers(mca)
    questions = Questions(mca)
    plans = {
        form: _plan(questions, examples[form], text, producers) for form, text in spellings.items()
    }
    questions.answer()
    many = mca.run([[text] for text in spellings.values()], iterations=64)
    found = {}
    for (form, text), spread in zip(spellings.items(), many, strict=True):
        assert spread is not None
        found[form] = (_timing(core, questions, plans[form], spread), text)
    return found


def _producers(mca: Mca) -> dict[str, tuple[tuple[str, str, int], ...]]:
    """By kind of register: name, text and latency of the probes that this core has."""
    questions = Questions(mca)
    asked = []
    for letter, each in _PRODUCERS.items():
        register = f"{letter}0"
        for name, text in each:
            numbers = [
                questions.ask(text.format(register), consumer.format(register))
                for consumer in _CONSUMERS[letter]
            ]
            asked.append((letter, name, text, numbers))
    questions.answer()
    found: dict[str, list[tuple[str, str, int]]] = {letter: [] for letter in _PRODUCERS}
    for letter, name, text, numbers in asked:
        gaps = [gap for gap in map(questions.gap, numbers) if gap is not None]
        if gaps:
            found[letter].append((name, text, min(gaps)))
    return {letter: tuple(each) for letter, each in found.items()}


@dataclass
class Plan:
    """The numbers of the questions about a form."""

    example: Instruction
    alone: int
    before: list[int]
    after: list[int]
    writes: dict[str, list[int]]
    reads: dict[str, list[tuple[str, int, int, int]]]


def _plan(
    questions: Questions,
    example: Instruction,
    text: str,
    producers: Mapping[str, Sequence[tuple[str, str, int]]],
) -> Plan:
    probe = parse_instruction(0, example.size_bytes, text)
    plan = Plan(
        example,
        questions.ask(text),
        [questions.ask(before, text) for before in _BEFORE],
        [questions.ask(text, after) for after in _AFTER],
        {},
        {},
    )
    for place, register in enumerate(register_tokens(probe)):
        letter = _letter(register)
        pieces = set(parts(register))
        if pieces & probe.writes and register != "pc":
            plan.writes[str(place)] = [
                questions.ask(text, consumer.format(register)) for consumer in _CONSUMERS[letter]
            ]
        if pieces & probe.reads and register not in ("pc", "sp"):
            plan.reads[str(place)] = [
                (
                    name,
                    latency,
                    questions.ask(producer.format(register), text),
                    questions.ask(producer.format(_CONTROL[letter]), text),
                )
                for name, producer, latency in producers[letter]
            ]
    for name in ("flags", "p0"):
        if name in probe.writes:
            plan.writes[name] = [questions.ask(text, each) for each in _CONSUMERS[name]]
    return plan


_CONTROL = {"r": "r12", "s": "s29", "d": "d13", "q": "q5"}


def _timing(core: str, questions: Questions, plan: Plan, spread: Region) -> dict:
    alone = questions.answers[plan.alone]
    assert alone is not None
    writes = {}
    for place, numbers in plan.writes.items():
        gaps = [gap for gap in map(questions.gap, numbers) if gap is not None]
        if gaps:
            writes[place] = min(gaps)
        if gaps and _hidden_update(plan.example, place):
            writes[place] = 0
    latency = max(writes.values()) if writes else alone.latencies[0]
    if core == "cortex-m55":
        begins = ends = plan.example.size_bytes == 4
    else:
        begins = 0 not in [questions.gap(number) for number in plan.before]
        ends = _ends_group(core, questions, plan, begins, latency)
    return {
        "units": _units(alone.units[0], spread.units[0]),
        "slots": alone.slots[0],
        "begins_group": begins,
        "ends_group": ends,
        "latency": latency,
        "writes": writes,
        "reads": {
            place: advance
            for place, asked in plan.reads.items()
            if (advance := _advance(core, questions, plan.example, asked))
        },
    }


def _hidden_update(example: Instruction, place: str) -> bool:
    """Whether a result is the address of a load or a store that nothing can be issued with, so that
    its latency (0: M7BaseUpdate, M85BaseUpdate) cannot be seen. Not of vectors (1)."""
    if example.registers < 2 or not place.isdigit() or example.mnemonic.startswith(_VECTORS):
        return False
    return register_tokens(example)[int(place)] in example.address_registers


_VECTORS = ("vldr", "vstr", "vld2", "vld4", "vst2", "vst4")
_FAMILY = re.compile(r"(\.\d+|[LH])$")


def _units(once: Mapping[str, float], often: Mapping[str, float]) -> dict[str, int]:
    """Units of a form: `A` for the unit A, `A|B` for either. Either, where one run takes one of
    a family and many runs spread over others of it."""
    found: dict[str, int] = {}
    for name, cycles in once.items():
        kin = sorted(
            other
            for other in often
            if other == name or (other not in once and _same_family(name, other))
        )
        key = "|".join(kin)
        found[key] = found.get(key, 0) + round(cycles)
    return dict(sorted(found.items()))


def _same_family(one: str, other: str) -> bool:
    vectors = {"VecALU", "VecFPALU"}
    return _FAMILY.sub("", one) == _FAMILY.sub("", other) or {one, other} == vectors


def _ends_group(core: str, questions: Questions, plan: Plan, begins: bool, latency: int) -> bool:
    gaps = [questions.gap(number) for number in plan.after]
    if 0 in gaps:
        return False
    if latency <= 2 or plan.example.is_store:
        return True
    # llvm-mca's retirement in order hides the group's end: by the model's own text
    # (ARMScheduleM7.td, ARMScheduleM85.td) M85 ends a group after vector instructions, M7 after
    # moves of two registers and of system registers.
    if core == "cortex-m85":
        return any(register[0] == "q" for register in register_tokens(plan.example))
    moves = plan.example.mnemonic == "vmov" and len(plan.example.operands) > 2
    return begins and (moves or plan.example.mnemonic in ("mrs", "msr", "vmrs", "vmsr"))


def _advance(
    core: str,
    questions: Questions,
    example: Instruction,
    asked: Sequence[tuple[str, int, int, int]],
) -> dict[str, int]:
    """How much later than its issue an operand is read, by kind of producer; empty: at its issue.

    A gap as long as that behind an unrelated producer gives a lower bound only.
    """
    vectors = asked[0][0] == "vldr"
    if vectors and example.is_store and core != "cortex-m55":
        return {"*": 2}  # M7Read_EX3, M85Read_EX3: retirement in order hides it
    exact: list[tuple[int, str, int]] = []
    bounds: list[tuple[int, str, int]] = []
    for name, latency, number, control in asked:
        gap, unrelated = questions.gap(number), questions.gap(control)
        if gap is None or unrelated is None:
            continue
        kind = name if name == "load" else str(latency)
        (exact if gap > unrelated else bounds).append((latency, kind, latency - gap))
    if not exact and not bounds:
        return {}
    default = max(exact)[2] if exact else max(bound for _, _, bound in bounds)
    found = {kind: value for _, kind, value in exact if value != default}
    found |= {kind: bound for _, kind, bound in bounds if bound > default}
    if not default and not found:
        return {}
    return {"*": default, **dict(sorted(found.items()))}


# --- Tables ---------------------------------------------------------------------------------------


def table_text(core: str, forms: Mapping[str, tuple[dict, str]]) -> str:
    """The JSON of a table: classes of timings, and forms with their class and example."""
    classes: list[dict] = []
    numbers: dict[str, int] = {}
    listed = {}
    for form, (timing, example) in sorted(forms.items()):
        key = json.dumps(timing, sort_keys=True)
        if key not in numbers:
            numbers[key] = len(classes)
            classes.append(timing)
        listed[form] = [numbers[key], example]
    units = sorted({name for each in classes for key in each["units"] for name in key.split("|")})
    lines = ["{", f' "core": {json.dumps(core)},', f' "units": {json.dumps(units)},']
    lines += [' "classes": [']
    lines += [",\n".join(f"  {json.dumps(each)}" for each in classes)]
    lines += [" ],", ' "forms": {']
    lines += [",\n".join(f"  {json.dumps(form)}: {json.dumps(v)}" for form, v in listed.items())]
    lines += [" }", "}"]
    return "\n".join(lines) + "\n"


def path_of(core: str) -> Path:
    return TABLES / f"{core.replace('-', '_')}.json"


def known_examples() -> dict[str, Instruction]:
    """The examples that the present tables were measured with."""
    found: dict[str, Instruction] = {}
    for core in CORES:
        if path_of(core).exists():
            forms = json.loads(path_of(core).read_text(encoding="utf-8"))["forms"]
            for form, (_, text) in forms.items():
                size = 2 if form.partition(" ")[0].endswith(".n") else 4
                found.setdefault(form, parse_instruction(0, size, text))
    return found


# --- Comparison -----------------------------------------------------------------------------------

_LONGEST = 150
_LATE = ("ldrb.w r12, [r10]", "vadd.f64 d15, d15, d14", "vmla.f32 s28, s30, s31")
"""Instructions before a form whose results come late, to see when its first result comes."""
_SOON = "movs r7, #1"
"""LLVM has the flags of a 16-bit instruction at once: its first result comes in cycle 0."""


@dataclass
class InOrder(Scoreboard):
    """The scoreboard with llvm-mca's retirement in order: an instruction waits until none of its
    results comes before the last one of those before it."""

    come: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    last: int = 0

    def ready(self, timing: Timing) -> int:
        first, _ = self.come.get(form_of(timing.instruction), (0, 0))
        return max(super().ready(timing), self.last - first)

    def place(self, timing: Timing) -> int:
        at = super().place(timing)
        _, last = self.come.get(form_of(timing.instruction), (0, 0))
        self.last = max(self.last, at + last)
        return at


def results_come(core: str, spellings: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Cycles from its issue until llvm-mca sees the first and the last result of each form."""
    questions = Questions(Mca(core))
    late = [(questions.ask(text, _SOON), text) for text in _LATE]
    asked = {
        form: (
            questions.ask(text, _SOON),
            [(questions.ask(before, text), at) for at, before in late],
        )
        for form, text in spellings.items()
    }
    questions.answer()
    found = {}
    for form, (after, before) in asked.items():
        gaps = [(questions.gap(number), questions.gap(at)) for number, at in before]
        first = max((long - gap for gap, long in gaps if gap is not None and long), default=0)
        found[form] = (max(first, 0), questions.gap(after) or 0)
    return found


def loops_of(program: Program) -> Iterable[tuple[Instruction, ...]]:
    """Straight loop bodies: from a branch's target back to it, no branch between."""
    for instruction in program.instructions.values():
        start = instruction.target
        if start is None or not 0 <= instruction.address - start < 4 * _LONGEST:
            continue
        if instruction.is_call or start not in program.instructions:
            continue
        body = [program.instructions[start]]
        while body[-1] is not instruction and body[-1].end in program.instructions:
            body.append(program.instructions[body[-1].end])
        if body[-1] is instruction and not any(each.is_branch for each in body[:-1]):
            # LE ends a turn for nothing; llvm-mca takes it for 100 cycles
            yield tuple(body[:-1] if body[-1].mnemonic in ("le", "letp") else body)


def random_blocks(program: Program, dice: random.Random) -> Iterable[tuple[Instruction, ...]]:
    """Runs of a program's instructions without branches and conditions, shuffled."""
    plain = [
        each
        for each in program.instructions.values()
        if not (each.is_branch or each.condition or each.is_it or each.mnemonic in _NO_EXAMPLE)
        and not each.mnemonic.startswith("vpt")
    ]
    for _ in range(40):
        yield tuple(dice.choice(plain) for _ in range(dice.randint(4, 30)))


def compared(core: str, table: Table, rules: Rules, programs: Sequence[Program]) -> None:
    """Prints our cycles of a turn beside llvm-mca's, and the mean errors."""
    mca = Mca(core)
    dice = random.Random(17)
    blocks: dict[str, dict[tuple[str, ...], tuple[Instruction, ...]]] = {"loop": {}, "random": {}}
    for program in programs:
        for name, found in (("loop", loops_of(program)), ("random", random_blocks(program, dice))):
            for block in found:
                lines = tuple(spelled(each) for each in block)
                blocks[name].setdefault(lines, block)
    forms = {
        form_of(each): each for kind in blocks.values() for run in kind.values() for each in run
    }
    come = results_come(core, chosen_spellings(mca, forms))
    for name, found in blocks.items():
        texts = list(found)
        spellings = _spellings(mca, texts)
        few, many = (mca.run(spellings, iterations) for iterations in (20, 60))
        errors: list[tuple[float, float]] = []
        for lines, short, long in zip(texts, few, many, strict=True):
            if short is None or long is None:
                continue
            theirs = (long.cycles - short.cycles) / 40
            timed = [timing_of_instruction(each, table, Rules()) for each in found[lines]]
            tables = _turn(InOrder(Rules(), come=come), timed)
            model = _turn(Scoreboard(Rules()), timed)
            ours = [timing_of_instruction(each, table, rules) for each in found[lines]]
            rule = _turn(Scoreboard(rules), ours)
            errors.append((tables / theirs - 1, rule / theirs - 1))
            print(
                f"{core} {name} of {len(lines):3}: llvm-mca {theirs:6.2f}, tables retiring in "
                f"order {tables:6.2f}, tables {model:6.2f}, with our rules {rule:6.2f} | {lines[0]}"
            )
        for title, column in (("tables retiring in order", 0), ("what Thimble reports", 1)):
            if errors:
                mean = sum(abs(each[column]) for each in errors) / len(errors)
                print(f"{core} {name}s, {len(errors)}: {title}, mean error {mean:.1%}")


def _turn(board: Scoreboard, timings: Sequence[Timing]) -> float:
    issued = [board.place(timing) for _ in range(48) for timing in timings]
    return (issued[47 * len(timings)] - issued[7 * len(timings)]) / 40


def _spellings(mca: Mca, blocks: Sequence[Sequence[str]]) -> list[list[str]]:
    """Blocks with each instruction in the spelling that LLVM takes."""
    texts = sorted({text for block in blocks for text in block})
    taken = mca.run([[text, _BEFORE[0]] for text in texts])
    known = {text for text, answer in zip(texts, taken, strict=True) if answer is not None}
    return [
        [text if text in known or text.startswith("it") else without_width(text) for text in block]
        for block in blocks
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("elf", nargs="*", type=Path)
    parser.add_argument("--core", choices=CORES, action="append")
    parser.add_argument("--write", action="store_true", help="renew the tables")
    parser.add_argument("--compare", action="store_true", help="hold the scoreboard against it")
    parser.add_argument("--objdump", default="arm-none-eabi-objdump")
    arguments = parser.parse_args()
    programs = [read_program(elf, arguments.objdump) for elf in arguments.elf]
    if arguments.compare:
        for core in arguments.core or CORES:
            timing = timing_of(core)
            assert isinstance(timing, DualIssueCore)
            compared(core, timing.table, timing.rules, programs)
        return
    examples = known_examples() | examples_of(each.instructions.values() for each in programs)
    examples |= further_examples()
    for core in arguments.core or CORES:
        forms = measured(core, examples)
        text = table_text(core, forms)
        same = path_of(core).exists() and path_of(core).read_text(encoding="utf-8") == text
        print(f"{core}: {len(forms)} forms, {'as in' if same else 'differs from'} the table")
        if arguments.write:
            path_of(core).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
