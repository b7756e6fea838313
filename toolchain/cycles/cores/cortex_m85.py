"""Arm Cortex-M85: two instructions a cycle, in order, branches predicted, vectors in beats.

The table is LLVM's model (llvm/lib/Target/ARM/ARMScheduleM85.td, written by Arm). Beyond it:

- Words loaded into a vector instruction, or into a shifted index of an address: a cycle more; a
  vector accumulator handed on to the same kind of instruction: a cycle less. LLVM has these in
  ARMLatencyMutations.cpp (M85Overrides), where llvm-mca does not look.
- LDM, STM, PUSH, POP and their VFP forms take ceil(words / 2) cycles (LLVM: one whatever the
  length); LDRD, STRD one, and can be issued with another instruction. Basic ALU instructions
  that come first in their cycle feed an instruction of the same cycle (LLVM: not before the next).
  IT and LE take no slot. A wrong guess at a branch costs 5 cycles. All measured on silicon:
  jnk0le/random, "pipeline cycle test/doc/cortex_m85.md" (RA8D1), which adds to Arm's Cortex-M85
  Software Optimization Guide (107950).
- Division: issued alone, stalls until it is done (the model's text); 7 cycles (its latency).
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from toolchain.cycles.dual_issue import Branches, DualIssueCore, Form, Rules, read_table
from toolchain.cycles.instruction import Instruction

_DIVISION = 7
_EARLY = frozenset({"add", "addw", "sub", "subw", "mov", "movw"})
_ACCUMULATES = re.compile(r"v(mlas?|qr?dmlas?h|qr?dml[as]dhx?)")


def _form(instruction: Instruction, form: Form) -> Form:
    if instruction.is_it or instruction.mnemonic in ("le", "letp"):
        return dataclasses.replace(form, units={}, slots=0, begins_group=False, ends_group=False)
    if instruction.mnemonic in ("vpst", "vpt"):
        return dataclasses.replace(form, units={"VFPD": 2}, slots=1, ends_group=True)
    if instruction.mnemonic in ("sdiv", "udiv"):
        return dataclasses.replace(
            form, units={}, begins_group=True, ends_group=True, issue_cycles=_DIVISION
        )
    if instruction.registers > 2 and not _is_vector(instruction):
        cycles = (instruction.registers + 1) // 2
        return dataclasses.replace(form, begins_group=True, ends_group=True, issue_cycles=cycles)
    return form


def _is_vector(instruction: Instruction) -> bool:
    return any(operand.startswith(("q", "{q")) for operand in instruction.operands)


def _bypass(producer: Instruction, consumer: Instruction, register: str) -> int:
    more = 0
    word = producer.mnemonic in ("ldr", "ldrd")
    if word and (_is_vector(consumer) or _shifted_index(consumer) == register):
        more += 1
    if (
        _is_vector(consumer)
        and _ACCUMULATES.fullmatch(consumer.mnemonic) is not None
        and producer.mnemonic == consumer.mnemonic
        and register in consumer.writes
    ):
        more -= 1
    return more


def _shifted_index(instruction: Instruction) -> str:
    bracket = (instruction.address_operand or "").strip("[]").split(", ")
    return bracket[1] if len(bracket) == 3 else ""


def _early(instruction: Instruction) -> bool:
    shifted = any(", " in operand for operand in instruction.operands)
    return instruction.mnemonic in _EARLY and not shifted and not instruction.condition


TIMING = DualIssueCore(
    name="cortex-m85",
    source="LLVM ARMScheduleM85.td and ARMLatencyMutations.cpp; measured on RA8D1 (jnk0le)",
    table=read_table(Path(__file__).with_suffix(".json")),
    rules=Rules(_form, _bypass, early=_early),
    branches=Branches(predicted=True, mispredicted=5, taken=0),
)
