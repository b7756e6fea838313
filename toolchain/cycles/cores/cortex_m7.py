"""Arm Cortex-M7: two instructions a cycle, in order, branches predicted.

The table is LLVM's model (llvm/lib/Target/ARM/ARMScheduleM7.td, written by Arm). Beyond it:

- Words loaded into a multiplication or a division, or into the index of an address: a cycle more;
  a product into an address: four cycles; results under a condition: a cycle more. LLVM has these in
  ARMLatencyMutations.cpp (CortexM7Overrides), where llvm-mca does not look. Measured on silicon
  too: jnk0le/random, "pipeline cycle test/doc/cortex_m7.md" (STM32H743).
- From the same measurements: LDM, STM, PUSH, POP, LDRD, STRD and their VFP forms are issued alone
  and take ceil(words / 2) cycles (LLVM: one cycle whatever the length); add, sub and mov that come
  first in their cycle are done a stage early and feed an instruction of the same cycle (LLVM: not
  before the next); two loads of the same bank (even or odd words) are not issued together;
  multiplication and store are not; a wrong guess at a branch costs 8 cycles when the flags are set
  in the instructions just before, as compilers do.
- Assumed: of conditional branches, one wrong guess a loop, at its end; returns and calls through
  registers go where they went before; table branches do not.
- Division: issued alone, stalls until it is done (the model's text); 7 cycles (its latency).
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from toolchain.cycles.dual_issue import Branches, DualIssueCore, Form, Rules, read_table
from toolchain.cycles.instruction import Instruction

_MULTIPLIES = re.compile(r"mul|ml[as]|sm[lmu]|um[al]")
_BY_CONDITION = 1
_PRODUCT_INTO_ADDRESS = 4
_DIVISION = 7
_EARLY = frozenset({"add", "addw", "sub", "subw", "mov", "movw"})


def _multiplies(instruction: Instruction) -> bool:
    return _MULTIPLIES.match(instruction.mnemonic) is not None


def _divides(instruction: Instruction) -> bool:
    return instruction.mnemonic in ("sdiv", "udiv")


def _form(instruction: Instruction, form: Form) -> Form:
    if instruction.is_it:
        return dataclasses.replace(form, units={}, slots=1, begins_group=False, ends_group=False)
    if _divides(instruction):
        return dataclasses.replace(
            form,
            slots=1,
            latency=_DIVISION,
            writes={"0": _DIVISION},
            begins_group=True,
            ends_group=True,
            issue_cycles=_DIVISION,
        )
    if instruction.registers > 1:
        cycles = (instruction.registers + 1) // 2
        return dataclasses.replace(form, begins_group=True, ends_group=True, issue_cycles=cycles)
    return form


def _index(instruction: Instruction) -> str:
    """The register that is added to the base of an address; empty where there is none."""
    bracket = instruction.address_operand or ""
    _, _, rest = bracket.strip("[]").partition(", ")
    return rest.partition(",")[0] if not rest.startswith("#") else ""


def _bypass(producer: Instruction, consumer: Instruction, register: str) -> int:
    more = 0
    word = producer.mnemonic in ("ldr", "ldrd")
    if word and (_multiplies(consumer) or _divides(consumer)):
        more += 1
    if word and _index(consumer) == register:
        more += 1
    if _multiplies(producer) and register in consumer.address_registers:
        more += _PRODUCT_INTO_ADDRESS - 3
    if producer.condition and producer.condition != consumer.condition and not producer.is_branch:
        more += _BY_CONDITION
    return more


def _offset(instruction: Instruction) -> tuple[str, int] | None:
    """Base and offset in bytes of a load whose address is a register and a number."""
    bracket = (instruction.address_operand or "").strip("[]")
    base, _, rest = bracket.partition(", ")
    if not base or instruction.operands[-1].rstrip("!") != instruction.address_operand:
        return (base, 0) if base and not rest else None
    if not rest:
        return base, 0
    return (base, int(rest[1:], 0)) if re.fullmatch(r"#-?\w+", rest) else None


def _apart(older: Instruction, younger: Instruction) -> bool:
    if older.is_load and younger.is_load:
        one, other = _offset(older), _offset(younger)
        if one is None or other is None or one[0] != other[0]:
            return False
        return one[0] not in older.writes and (one[1] // 4 - other[1] // 4) % 2 == 0
    products = _multiplies(older) or _multiplies(younger)
    return products and (older.is_store or younger.is_store)


def _early(instruction: Instruction) -> bool:
    shifted = any(", " in operand for operand in instruction.operands)
    return instruction.mnemonic in _EARLY and not shifted and not instruction.condition


TIMING = DualIssueCore(
    name="cortex-m7",
    source="LLVM ARMScheduleM7.td and ARMLatencyMutations.cpp; measured on STM32H743 (jnk0le)",
    table=read_table(Path(__file__).with_suffix(".json")),
    rules=Rules(_form, _bypass, _apart, _early),
    branches=Branches(predicted=True, mispredicted=8, taken=0),
)
