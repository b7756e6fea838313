"""The cost model that takes known costs of kernels, and estimates the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from toolchain.cost import Cost, CostModel
from toolchain.cost.basis import CYCLES, INSTRUCTIONS
from toolchain.cost.database import Measurement
from toolchain.cost.key import Key, copies_key, operator_key
from toolchain.ir import Graph
from toolchain.ops.lowering import Lowered


@dataclass(frozen=True)
class MeasuredCostModel:
    """`known` costs are in `unit`; other costs are the fallback's, times `scale`.

    `scale` converts the fallback's instructions to `unit`. If the units differ, it is the known
    cost of the known kernels divided by their estimated cost; otherwise it is 1.
    """

    known: Mapping[Key, Cost]
    unit: str
    fallback: CostModel
    scale: float = 1.0

    @property
    def identity(self) -> Hashable:
        """Equal where every known cost, the unit, the scale, and the fallback's identity are."""
        return frozenset(self.known.items()), self.unit, self.scale, self.fallback.identity

    def cost(self, lowered: Lowered, number: int) -> Cost:
        """The known cost of this kernel on this shape; otherwise the estimate. Estimated are also
        kernels that are copied to RAM (known costs are of code and constants in flash), and
        branches and loops, which depend on data.
        """
        kernel = lowered.kernels[number]
        usual = not (kernel.copied or kernel.nested)
        known = self.known.get(operator_key(lowered, number)) if usual else None
        return known or self._scaled(self.fallback.cost(lowered, number))

    def within(self, graph: Graph) -> MeasuredCostModel:
        """This model with the fallback `within` the graph; known costs stay."""
        return replace(self, fallback=self.fallback.within(graph))

    def copies(self, sizes: Sequence[int]) -> Cost:
        """The known cost of copies of so many bytes each; otherwise the estimate."""
        return self.known.get(copies_key(sizes)) or self._scaled(self.fallback.copies(sizes))

    def _scaled(self, estimate: Cost) -> Cost:
        return Cost(round(estimate.count * self.scale), estimate.basis)


def measured_model(rows: Iterable[Measurement], fallback: CostModel) -> CostModel:
    """A model from the rows of one board and build; the fallback if it can use none of them.

    Cycles come before instructions: rows in instructions are of no use where anything is known in
    cycles.
    """
    measured = tuple(rows)
    units = {fallback.unit, *(row.unit for row in measured)}
    unit = CYCLES if CYCLES in units else INSTRUCTIONS
    usable = tuple(row for row in measured if row.unit == unit)
    if not usable:
        return fallback
    scale, expected = 1.0, sum(row.estimate for row in usable)
    if unit != fallback.unit and expected:
        scale = sum(row.count for row in usable) / expected
    known = {row.key: Cost(row.count, row.basis) for row in usable}
    return MeasuredCostModel(MappingProxyType(known), unit, fallback, scale)
