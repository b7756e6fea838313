"""Cores that finish one instruction after the other: the pipeline of Armv6-M and Armv7-M cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from toolchain.cycles.instruction import Instruction

_SINGLE_LOADS = frozenset(
    {
        *("ldr", "ldrb", "ldrh", "ldrsb", "ldrsh"),
        *("ldrt", "ldrbt", "ldrht", "ldrsbt", "ldrsht"),
        *("ldrex", "ldrexb", "ldrexh", "strex", "strexb", "strexh"),
    }
)
_SINGLE_STORES = frozenset({"str", "strb", "strh", "strt", "strbt", "strht"})
_TABLE_BRANCHES = frozenset({"tbb", "tbh"})
_FLOAT_ARITHMETIC = frozenset(
    {
        *("vadd", "vsub", "vmul", "vnmul", "vdiv", "vsqrt", "vcvt", "vcvtr", "vcvtb", "vcvtt"),
        *("vmla", "vmls", "vnmla", "vnmls", "vfma", "vfms", "vfnma", "vfnms"),
    }
)
_FLOAT_ACCUMULATE = frozenset({"vmla", "vmls", "vnmla", "vnmls", "vfma", "vfms", "vfnma", "vfnms"})
_FLOAT_DIVIDE = frozenset({"vdiv", "vsqrt"})


@dataclass
class _State:
    """State of the pipeline: the time of its end, the instruction before, results under way."""

    now: float = 0.0
    previous: Instruction | None = None
    float_unit_free: float = 0.0
    float_ready: dict[str, float] = field(default_factory=dict)


def is_word_unaligned_wide(instruction: Instruction) -> bool:
    """Whether an instruction of four bytes begins in the middle of a word."""
    return instruction.size_bytes == 4 and instruction.address % 4 != 0


@dataclass(frozen=True)
class Armv7MTiming:
    """Cortex-M3 and Cortex-M4.

    `cycles`: by mnemonic, where it is not 1. Loads, stores and branches follow the rules in
    section "Load/store timings" of both manuals, quoted beside each rule below.

    P, the refill of the pipeline, is "1 to 3 depending on the alignment and width of the target
    instruction, and whether the processor manages to speculate the address early". Its cycles are 1
    for branches to an immediate ("normally 1 cycle of pipeline reload (2 cycles total)", Cortex-M3
    DDI 0337E, page 18-5), 2 to a register (the same page), 3 where the address is loaded (LDR PC,
    POP, TBB), and 1 more, up to 3, if the target is a 32-bit instruction that is not word-aligned
    ("branches to unaligned wide instructions will take one extra cycle", measured:
    compendium.i-0.nl, instruction alignment).
    """

    name: str
    source: str
    cycles: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def block_cycles(self, block: Sequence[Instruction], repeats: bool) -> tuple[float, ...]:
        state = _State()
        first = tuple(self._step(state, instruction) for instruction in block)
        if not repeats:
            return first
        before = block[-2] if len(block) > 1 else block[-1]
        state.now += self.taken_cycles(block[-1], before, block[0])
        return tuple(self._step(state, instruction) for instruction in block)

    def taken_cycles(
        self,
        branch: Instruction,
        previous: Instruction | None = None,
        target: Instruction | None = None,
    ) -> float:
        if branch.is_load or branch.mnemonic in _TABLE_BRANCHES:
            return 3.0
        refill = 1.0 if branch.target is not None else 2.0
        unaligned = target is not None and is_word_unaligned_wide(target)
        return min(refill + unaligned, 3.0)

    def overlapped_cycles(self, previous: Instruction, instruction: Instruction) -> float:
        # "Load pipelining happens only when targeting the same memory block by all loads" (measured
        # on STM32F103 and F407: jnk0le/random, "pipeline cycle test/doc/cortex_m3m4.md").
        single = instruction.is_load and _is_single(instruction)
        return float(single and _follows_load(previous, instruction))

    def _step(self, state: _State, instruction: Instruction) -> float:
        start = state.now
        if instruction.mnemonic.startswith("v") and not instruction.is_it:
            self._float(state, instruction)
        else:
            state.now += self._integer(state.previous, instruction)
        state.previous = instruction
        return state.now - start

    def _integer(self, previous: Instruction | None, instruction: Instruction) -> float:
        if instruction.is_load or instruction.is_store:
            return self._transfer(previous, instruction)
        if instruction.is_it:
            # "An IT instruction can be folded onto a preceding 16-bit Thumb instruction."
            folded = previous is not None and previous.size_bytes == 2
            return 0.0 if folded else 1.0
        return self.cycles.get(instruction.mnemonic, 1.0)

    def _transfer(self, previous: Instruction | None, instruction: Instruction) -> float:
        late = _late_address(previous, instruction)
        if not _is_single(instruction):
            # "LDM and STM cannot be pipelined with preceding or following instructions."
            return 1.0 + instruction.registers + late
        if instruction.mnemonic in _SINGLE_STORES and not _has_register_offset(instruction):
            return 1.0 + late  # "STR Rx,[Ry,#imm] is always one cycle."
        return 2.0 - _follows_load(previous, instruction) + late

    def _float(self, state: _State, instruction: Instruction) -> None:
        start = state.now
        if instruction.is_load or instruction.is_store:
            state.now += self._transfer(state.previous, instruction)
            return
        waits = [state.float_unit_free]
        for register in instruction.reads:
            ready = state.float_ready.get(register, 0.0)
            # "Multiply with accumulate instructions consume their addend one cycle later."
            addend = instruction.mnemonic in _FLOAT_ACCUMULATE and register in instruction.writes
            waits.append(ready - addend)
        start = max(start, *waits)
        cycles = self.cycles.get(instruction.mnemonic, 1.0)
        if instruction.mnemonic == "vmov":
            cycles = 2.0 if _moves_core_register(instruction) else 1.0
        # "VDIV and VSQRT take one cycle if no further floating-point instructions are executed."
        divides = instruction.mnemonic in _FLOAT_DIVIDE
        state.now = start + (1.0 if divides else cycles)
        state.float_unit_free = start + cycles
        # "One cycle longer if their result is consumed by the following instruction."
        result = start + cycles + (instruction.mnemonic in _FLOAT_ARITHMETIC)
        state.float_ready.update((register, result) for register in instruction.writes)


def _is_single(instruction: Instruction) -> bool:
    if instruction.mnemonic in ("vldr", "vstr"):
        return instruction.registers == 1
    return instruction.mnemonic in _SINGLE_LOADS or instruction.mnemonic in _SINGLE_STORES


def _follows_load(previous: Instruction | None, instruction: Instruction) -> bool:
    # "The destination of the first LDR is not used to compute the address for the next."
    return (
        previous is not None
        and previous.is_load
        and _is_single(previous)
        and not previous.writes & instruction.address_registers
    )


def _has_register_offset(instruction: Instruction) -> bool:
    address = instruction.address_operand
    return address is not None and len(address.split(",")) > 1 and "#" not in address.split(",")[1]


def _late_address(previous: Instruction | None, instruction: Instruction) -> float:
    # "Any load or store that generates an address dependent on the result of a preceding data
    # processing operation stalls the pipeline for an additional cycle."
    if previous is None or previous.is_load or previous.is_store or previous.is_branch:
        return 0.0
    return 1.0 if previous.writes & instruction.address_registers else 0.0


def _moves_core_register(instruction: Instruction) -> bool:
    return any(register[0] in "rl" for register in instruction.reads | instruction.writes)
