"""Arm Cortex-M55: one instruction a cycle, two of 16 bits at times, vectors in beats.

The table is LLVM's model (llvm/lib/Target/ARM/ARMScheduleM55.td). A vector instruction takes its
pipe for two beats of a cycle each; an instruction for another pipe starts at its second beat. Two
16-bit instructions are issued together when one of them is a branch, IT, `nop`, add or sub of an
immediate, a move, or a sign or zero extension. Beyond the table:

- Loads and stores of several registers: a cycle for two words, the pace of LDRD and STRD by LLVM
  and by SLOTHY's model of this core (slothy-optimizer/slothy, cortex_m55r1.py). LLVM has one cycle
  whatever the length; no figure of Arm's is public.
- A scalar that reads what a vector instruction reduced waits a cycle more: ARMLatencyMutations.cpp
  (CortexM55Overrides), where llvm-mca does not look.
- Division stalls for 7 cycles, as on Cortex-M7: no figure of this core's is public, and LLVM has 2.
- Branches are not predicted: a taken one costs MispredictPenalty (3) more. LE costs nothing once
  its loop is known; the first time it is a taken branch, counted at WLS and DLS.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from toolchain.cycles.dual_issue import Branches, DualIssueCore, Form, Rules, read_table
from toolchain.cycles.instruction import Instruction

_TAKEN = 3
_DIVISION = 7
_REDUCES = re.compile(r"v(r?ml[as]l?d?av|addl?v|abav|(max|min)(nm)?a?v)")


def _form(instruction: Instruction, form: Form) -> Form:
    if instruction.mnemonic in ("le", "letp"):
        return dataclasses.replace(form, units={}, slots=0, begins_group=False, ends_group=False)
    if instruction.is_it:
        return dataclasses.replace(form, units={}, slots=1, begins_group=False, ends_group=False)
    if instruction.mnemonic in ("wls", "dls", "wlstp", "dlstp"):
        return _alone(form, 1 + _TAKEN)
    if instruction.mnemonic in ("sdiv", "udiv"):
        return _alone(form, _DIVISION)
    if instruction.mnemonic in ("vpst", "vpt"):
        return _alone(dataclasses.replace(form, units={"VecSys": 1}), 1)
    if instruction.registers > 2 and not _is_vector(instruction):
        return _alone(form, (instruction.registers + 1) // 2)
    return form


def _alone(form: Form, cycles: int) -> Form:
    return dataclasses.replace(form, issue_cycles=cycles, begins_group=True, ends_group=True)


def _is_vector(instruction: Instruction) -> bool:
    return any(operand.startswith(("q", "{q")) for operand in instruction.operands)


def _bypass(producer: Instruction, consumer: Instruction, register: str) -> int:
    reduced = _REDUCES.match(producer.mnemonic) is not None and register.startswith("r")
    return 1 if reduced and not consumer.mnemonic.startswith("v") else 0


TIMING = DualIssueCore(
    name="cortex-m55",
    source="LLVM ARMScheduleM55.td and ARMLatencyMutations.cpp",
    table=read_table(Path(__file__).with_suffix(".json")),
    rules=Rules(_form, _bypass, open_slot=1),
    branches=Branches(predicted=False, mispredicted=0, taken=_TAKEN),
)
