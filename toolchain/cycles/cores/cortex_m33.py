"""Cortex-M33. Arm publishes no table of its timings: the Technical Reference Manual (100230) has
none.

The figures are measurements of an RP2350 (r1p0) that are published in github.com/jnk0le/random,
`pipeline cycle test/doc/cortex_m33.md`; the rules below quote it. Assumed, for want of a
measurement: division takes what it takes on a Cortex-M4 (DDI 0439D), and so does the FPU's
arithmetic but multiply-accumulate; a branch to a register, or to an address just loaded, refills
the pipeline for one cycle more than a direct one; a branch that is not issued beside another
instruction takes 1 cycle, 2 if taken; extensions and saturations (SXTB16, SSAT) have their result
after 1 cycle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolchain.cycles.instruction import Instruction, register_names

_MULTIPLY = re.compile(
    r"mul|mla|mls|[su]mull|[su]mlal|umaal|smla\w+|smls\w+|smmul\w*|smmla\w*|smmls\w*"
    r"|smu[al]\w+|smusdx?|usada8"
)
_DSP = re.compile(
    r"(s|u|q|uq|sh|uh)(add8|add16|sub8|sub16|asx|sax)|q(add|sub|dadd|dsub)|pkh(bt|tb)|sel|usad8"
)
_EXTEND_AND_ADD = re.compile(r"[su]xta(b|h|b16)")
_PAIRED_BRANCHES = frozenset({"b", "bx", "blx", "cbz", "cbnz"})
_FLOAT_ACCUMULATE = frozenset({"vmla", "vmls", "vnmla", "vnmls", "vfma", "vfms", "vfnma", "vfnms"})
_DIVIDE_CYCLES = 7
_FLOAT_DIVIDE_CYCLES = 14
_SHIFTED = re.compile(r", (lsl|lsr|asr|ror) #|, rrx")


@dataclass
class _State:
    """Time, the instruction before and whether it shared its cycle, results under way."""

    now: float = 0.0
    previous: Instruction | None = None
    previous_shared: bool = False
    float_unit_free: float = 0.0
    ready: dict[str, float] = field(default_factory=dict)
    addend_ready: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _CortexM33:
    """A pipeline of two stages of execution; results of the second are ready a cycle later."""

    name: str = "cortex-m33"
    source: str = (
        "measured on an RP2350 (r1p0): github.com/jnk0le/random, pipeline cycle test, "
        "doc/cortex_m33.md; Arm publishes no timings (TRM 100230)"
    )

    def block_cycles(self, block: Sequence[Instruction], repeats: bool) -> tuple[float, ...]:
        state = _State()
        first = tuple(_step(state, instruction) for instruction in block)
        if not repeats:
            return first
        before = block[-2] if len(block) > 1 else block[-1]
        state.now += self.taken_cycles(block[-1], before, block[0])
        state.previous = None
        return tuple(_step(state, instruction) for instruction in block)

    def taken_cycles(
        self,
        branch: Instruction,
        previous: Instruction | None = None,
        target: Instruction | None = None,
    ) -> float:
        if branch.is_load or branch.target is None:
            return 2.0
        # "subs r7, #1; bne: 2 cycles taken, 0 not taken"; "taken branch can dual issue when
        # preceded by 16 bit instruction that doesn't generate condition flags. It's effectively
        # executing in 1 cycle."
        waits = previous is not None and _shares_cycle(previous, branch)
        waits = waits and previous is not None and "flags" in previous.writes
        return 2.0 if waits else 1.0

    def overlapped_cycles(self, previous: Instruction, instruction: Instruction) -> float:
        return 0.0


def _step(state: _State, instruction: Instruction) -> float:
    start = state.now
    previous = state.previous
    shares = (
        previous is not None and not state.previous_shared and _shares_cycle(previous, instruction)
    )
    issue = _issue(state, instruction)
    cycles = 0.0 if shares and issue == start else _cycles(instruction)
    _results(state, instruction, issue, cycles)
    state.now = issue + cycles
    state.previous = instruction
    state.previous_shared = shares
    return state.now - start


def _shares_cycle(previous: Instruction, instruction: Instruction) -> bool:
    """ "Only two 16 bit instructions can dual issue", and of them only a branch, NOP or IT as the
    second: "can't dual issue arithmetic+arithmetic or load/store + arithmetic".
    """
    if previous.size_bytes != 2 or instruction.size_bytes != 2 or previous.is_branch:
        return False
    return (
        instruction.mnemonic in _PAIRED_BRANCHES
        or instruction.mnemonic == "nop"
        or instruction.is_it
    )


def _issue(state: _State, instruction: Instruction) -> float:
    """The time at which an instruction's operands are there."""
    waits = [state.now]
    addends = _addends(instruction)
    for register in instruction.reads:
        if register in addends:
            waits.append(state.addend_ready.get(register, 0.0))
        elif not (instruction.is_branch and register == "flags"):
            waits.append(state.ready.get(register, 0.0))
    if _is_float_arithmetic(instruction):
        waits.append(state.float_unit_free)
    return max(waits)


def _addends(instruction: Instruction) -> frozenset[str]:
    """Registers that an instruction wants only in the second stage."""
    if instruction.is_store:
        # "Load to store latency is 1 cycle"; "can store result from accumulate stage in 1 cycle".
        return instruction.reads - instruction.address_registers
    if _EXTEND_AND_ADD.fullmatch(instruction.mnemonic) and len(instruction.operands) > 2:
        return frozenset({instruction.operands[1].split(",")[0]})
    if instruction.mnemonic in ("mla", "mls") or re.match(
        r"sm(la|ls|mla|mls)", instruction.mnemonic
    ):
        if len(instruction.writes & instruction.reads) == 2 or "mlal" in instruction.mnemonic:
            return instruction.writes
        return frozenset({instruction.operands[-1]})
    if instruction.mnemonic in ("umlal", "umaal") or instruction.mnemonic in _FLOAT_ACCUMULATE:
        return instruction.writes
    return frozenset()


def _cycles(instruction: Instruction) -> float:
    if instruction.is_load or instruction.is_store:
        # "Load/store double execute in 2 cycles", "multiple of x registers in exactly x cycles".
        return float(instruction.registers)
    if instruction.mnemonic in ("sdiv", "udiv"):
        return float(_DIVIDE_CYCLES)
    # "muls.n and operand2 shifted constant" that set flags "take a total of 2 cycles".
    if "flags" in instruction.writes and (
        instruction.mnemonic == "mul" or _has_shifted_constant(instruction)
    ):
        return 2.0
    return 1.0


def _loaded(instruction: Instruction) -> list[str]:
    """Registers that a load writes from memory, in the order of addresses."""
    base = instruction.address_registers if instruction.writes_back else frozenset()
    named = [r for o in instruction.operands if not o.startswith("[") for r in register_names(o)]
    return [register for register in named if register in instruction.writes - base]


def _results(state: _State, instruction: Instruction, issue: float, cycles: float) -> None:
    if instruction.is_load:
        # "Load to use latency is 2 cycles"; "can be consumed as MAC accumulate dependency in 1".
        # "vldr.32 has 1 cycle of load to use latency". A load of several words gets one each cycle.
        latency = 1.0 if instruction.mnemonic.startswith("v") else 2.0
        base = instruction.address_registers if instruction.writes_back else frozenset()
        state.ready.update((register, issue + cycles) for register in base)
        for order, register in enumerate(_loaded(instruction)):
            state.ready[register] = issue + order + latency
            state.addend_ready[register] = issue + order + 1.0
        return
    latency, chained = 1.0, 1.0
    if _takes_two_stages(instruction):
        latency = 2.0
    elif _DSP.fullmatch(instruction.mnemonic):
        # "DSP and SIMD instructions (qsub, uadd8, pkh{bt,tb}) have 2 cycle result latency (no
        # chaining)".
        latency = chained = 2.0
    elif instruction.mnemonic in _FLOAT_ACCUMULATE:
        # "FMA/MLA execute in 1 cycle with 3 cycle of result latency into accumulator of another
        # FMA or 4 as multiplicand. No other floating point instruction can be issued in the
        # following 2 cycles."
        latency, chained = 4.0, 3.0
        state.float_unit_free = issue + chained
    elif instruction.mnemonic in ("vdiv", "vsqrt"):
        latency = chained = float(_FLOAT_DIVIDE_CYCLES + 1)
        state.float_unit_free = issue + _FLOAT_DIVIDE_CYCLES
    elif _is_float_arithmetic(instruction):
        latency = chained = 2.0
    elif instruction.mnemonic in ("sdiv", "udiv"):
        latency = chained = float(_DIVIDE_CYCLES)
    for register in instruction.writes:
        # "Condition flags generated by shifted reg operand2 instructions are available a cycle
        # later"; those of others at once.
        late = latency if register != "flags" or _has_shift(instruction) else 1.0
        state.ready[register] = issue + max(late, cycles)
        state.addend_ready[register] = issue + max(chained, cycles)


def _is_float_arithmetic(instruction: Instruction) -> bool:
    moves = ("vmov", "vmrs", "vmsr")
    transfers = instruction.is_load or instruction.is_store or instruction.mnemonic in moves
    return instruction.mnemonic.startswith("v") and not transfers


def _takes_two_stages(instruction: Instruction) -> bool:
    if _MULTIPLY.fullmatch(instruction.mnemonic) or _EXTEND_AND_ADD.fullmatch(instruction.mnemonic):
        return True
    return _has_shift(instruction) or _has_shifted_constant(instruction)


def _has_shift(instruction: Instruction) -> bool:
    """Whether operand2 is a register that is shifted; SXTB and so on only rotate."""
    if instruction.mnemonic.startswith(("sxt", "uxt")):
        return False
    return any(_SHIFTED.search(operand) for operand in instruction.operands)


def _has_shifted_constant(instruction: Instruction) -> bool:
    """Whether the constant is 8 bits moved left, and none of the repeated patterns."""
    if instruction.size_bytes != 4 or instruction.mnemonic in ("movw", "movt", "addw", "subw"):
        return False
    if instruction.is_load or instruction.is_store or instruction.is_branch:
        return False
    constant = instruction.operands[-1] if instruction.operands else ""
    match = re.fullmatch(r"#(-?\d+)", constant)
    if match is None or instruction.mnemonic in ("lsl", "lsr", "asr", "ror", "ubfx", "sbfx"):
        return False
    value = int(match.group(1)) & 0xFFFFFFFF
    if value < 256 or value & 0xFFFF == value >> 16:
        return False
    return value >> ((value & -value).bit_length() - 1) < 256


TIMING = _CortexM33()
