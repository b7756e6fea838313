"""The least cycles that the multiplications and loads of a run could take."""

from __future__ import annotations

from collections.abc import Iterable

from toolchain.cycles.instruction import Instruction
from toolchain.cycles.reading import Line

_MULTIPLY = ("smla", "smua", "smul", "smml", "smmu", "mla", "mul", "vmla", "vmul", "vfma")
_DUAL_ISSUE = ("cortex-m7", "cortex-m55", "cortex-m85")
_WORDS_AT_ONCE = 2
"""Words that a core with two issues loads in a cycle."""
_VECTOR_CYCLES = 2
"""Cycles of a Helium instruction: four beats, two a cycle (Arm DDI 0553, "Beats and ticks")."""


def issue_bound(lines: Iterable[Line], core: str) -> int:
    """Cycles in which `core` can issue the multiplications and loads of some executed lines.

    A core of single issue takes one for each multiplication and each loaded word (a Cortex-M0+ two
    for a load: DDI 0484C, table 3-1). On the others loads go beside multiplications.
    """
    multiplied = loaded = 0.0
    for line in lines:
        instruction, count = line.instruction, line.executions
        if instruction.mnemonic.startswith(_MULTIPLY):
            multiplied += count * (_VECTOR_CYCLES if _is_vector(instruction) else 1)
        elif instruction.is_load:
            loaded += count * _load_cycles(instruction, core)
    return round(max(multiplied, loaded) if core in _DUAL_ISSUE else multiplied + loaded)


def _load_cycles(instruction: Instruction, core: str) -> float:
    if _is_vector(instruction):
        return _VECTOR_CYCLES
    if core in ("cortex-m0", "cortex-m0plus"):
        return 2
    return instruction.registers / (_WORDS_AT_ONCE if core in _DUAL_ISSUE else 1)


def _is_vector(instruction: Instruction) -> bool:
    return any(operand.strip("{}").startswith("q") for operand in instruction.operands)
