"""What an operator costs on a board: estimated by a formula, or measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from toolchain.boards import Core
from toolchain.ir import Graph, Op


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

    def cost(self, op: Op, graph: Graph, core: Core) -> Cost: ...
