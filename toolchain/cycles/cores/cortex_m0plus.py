"""Cortex-M0+, from table 3-1 of Arm's Technical Reference Manual (DDI 0484C): no two instructions
overlap, so a run takes the sum of its instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.cycles.instruction import Instruction

_BARRIERS = frozenset({"isb", "dmb", "dsb", "mrs", "msr"})


@dataclass(frozen=True)
class _CortexM0Plus:
    """The single-cycle multiplier is taken for granted ("1 or 32, depends on implementation"), as
    are memories on the bus, not on the single-cycle I/O port.
    """

    name: str = "cortex-m0plus"
    source: str = "Arm Cortex-M0+ Technical Reference Manual (DDI 0484C): table 3-1"

    def block_cycles(self, block: Sequence[Instruction], repeats: bool) -> tuple[float, ...]:
        return tuple(_cycles(instruction) for instruction in block)

    def taken_cycles(
        self,
        branch: Instruction,
        previous: Instruction | None = None,
        target: Instruction | None = None,
    ) -> float:
        # B, BX, BLX, MOV PC and a taken Bcc 2; BL 3; POP with PC 3 + N, PC being one of the N.
        return 2.0 if branch.is_load or branch.mnemonic == "bl" else 1.0

    def overlapped_cycles(self, previous: Instruction, instruction: Instruction) -> float:
        return 0.0


def _cycles(instruction: Instruction) -> float:
    if instruction.mnemonic in ("push", "pop", "ldm", "ldmia", "stm", "stmia"):
        return 1.0 + instruction.registers
    if instruction.is_load or instruction.is_store:
        return 2.0
    return 3.0 if instruction.mnemonic in _BARRIERS else 1.0


TIMING = _CortexM0Plus()
