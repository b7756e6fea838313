"""Cores of Armv6-M, one instruction after the other: no two overlap, so a run takes their sum.

The single-cycle multiplier is taken for granted ("1 or 32, depends on implementation"), as are
memories on the bus, not on a single-cycle I/O port.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.cycles.instruction import Instruction

_BARRIERS = frozenset({"isb", "dmb", "dsb", "mrs", "msr"})


@dataclass(frozen=True)
class Armv6M:
    """`refill_cycles`: cycles that a taken branch adds; a call, or a branch that loads its address,
    adds one more. `barrier_cycles`: of barriers and special registers.
    """

    name: str
    source: str
    refill_cycles: int
    barrier_cycles: int

    def block_cycles(self, block: Sequence[Instruction], repeats: bool) -> tuple[float, ...]:
        return tuple(self._cycles(instruction) for instruction in block)

    def taken_cycles(
        self,
        branch: Instruction,
        previous: Instruction | None = None,
        target: Instruction | None = None,
    ) -> float:
        # B, BX, BLX, MOV PC and a taken Bcc; BL; POP with PC, PC being one of its N.
        return float(self.refill_cycles + (branch.is_load or branch.mnemonic == "bl"))

    def overlapped_cycles(self, previous: Instruction, instruction: Instruction) -> float:
        return 0.0

    def _cycles(self, instruction: Instruction) -> float:
        if instruction.mnemonic in ("push", "pop", "ldm", "ldmia", "stm", "stmia"):
            return 1.0 + instruction.registers
        if instruction.is_load or instruction.is_store:
            return 2.0
        return float(self.barrier_cycles) if instruction.mnemonic in _BARRIERS else 1.0
