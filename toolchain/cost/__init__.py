"""Cost of an operator on a board: measured, read from a trace, or predicted by a formula."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolchain.cost.basis import Basis
from toolchain.ir import Graph
from toolchain.ops.lowering import Lowered


@dataclass(frozen=True)
class Cost:
    """One run of an operator, in the unit of the model that gave it."""

    count: int
    basis: Basis


NOTHING = Cost(0, Basis.MEASURED)
"""The cost of an operator that has no code."""


class CostModel(Protocol):
    """Latency of operators on one target: a core with its memories and its clock."""

    @property
    def unit(self) -> str:
        """'cycles', or 'instructions' where the core has no model of its time."""

    @property
    def identity(self) -> Hashable:
        """Equal for two models only if both give every kernel of every graph the same cost."""

    def cost(self, lowered: Lowered, number: int) -> Cost:
        """The cost of operator `number` of the graph, which runs as a kernel."""

    def within(self, graph: Graph) -> CostModel:
        """This model for parts of operators of `graph`, each part alone in a graph."""

    def copies(self, sizes: Sequence[int]) -> Cost:
        """The cost of an operator that only makes copies of so many bytes each."""
