"""What an operator costs on a board: estimated by a formula, or measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolchain.boards import Core
from toolchain.ops.lowering import Lowered


@dataclass(frozen=True)
class Cost:
    """Instructions (QEMU, estimates) or cycles (silicon) of one run of an operator."""

    count: int
    measured: bool


class CostModel(Protocol):
    """Latency of an operator on a core."""

    @property
    def unit(self) -> str:
        """'instructions' or 'cycles'."""

    def cost(self, lowered: Lowered, number: int) -> Cost:
        """The cost of operator `number` of the graph, which runs as a kernel."""

    def copies(self, sizes: Sequence[int], core: Core) -> Cost:
        """The cost of an operator that only makes copies of so many bytes each."""
