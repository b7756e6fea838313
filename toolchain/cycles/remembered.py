"""A timing model that is asked once for each run of instructions of one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolchain.cycles.core_timing import CoreTiming
from toolchain.cycles.instruction import Instruction


@dataclass(frozen=True)
class Remembered:
    """`timing`, for one program: addresses tell its instructions apart."""

    timing: CoreTiming
    _known: dict[tuple[int, int, bool], tuple[float, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.timing.name

    @property
    def source(self) -> str:
        return self.timing.source

    def block_cycles(self, block: Sequence[Instruction], repeats: bool) -> tuple[float, ...]:
        key = (block[0].address, len(block), repeats)
        if key not in self._known:
            self._known[key] = self.timing.block_cycles(block, repeats)
        return self._known[key]

    def taken_cycles(
        self,
        branch: Instruction,
        previous: Instruction | None = None,
        target: Instruction | None = None,
    ) -> float:
        return self.timing.taken_cycles(branch, previous, target)

    def overlapped_cycles(self, previous: Instruction, instruction: Instruction) -> float:
        return self.timing.overlapped_cycles(previous, instruction)
