"""The cost model that takes known costs of kernels, and estimates the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from toolchain.cost import Cost, CostModel
from toolchain.cost.basis import CYCLES, INSTRUCTIONS
from toolchain.cost.correction import OF_ALL, Correction, kernel_name
from toolchain.cost.database import Measurement
from toolchain.cost.key import COPIES, Key, copies_key, operator_key
from toolchain.ir import Graph
from toolchain.ops.lowering import Lowered


@dataclass(frozen=True)
class MeasuredCostModel:
    """`known` costs are in `unit`; other costs are the fallback's, times `scale`, corrected.

    `scale` converts the fallback's instructions to `unit`. If the units differ, it is the known
    cost of the known kernels divided by their estimated cost; otherwise it is 1. `corrections`: of
    the fallback's cycles, by kernel.
    """

    known: Mapping[Key, Cost]
    unit: str
    fallback: CostModel
    scale: float = 1.0
    corrections: Mapping[str, Correction] = field(default_factory=dict)

    @property
    def identity(self) -> Hashable:
        """Equal where every known cost, the unit, the scale, the corrections, and the fallback's
        identity are.
        """
        known, corrections = frozenset(self.known.items()), frozenset(self.corrections.items())
        return known, self.unit, self.scale, corrections, self.fallback.identity

    def cost(self, lowered: Lowered, number: int) -> Cost:
        """The known cost of this kernel on this shape; otherwise the estimate. Estimated are also
        kernels that are copied to RAM (known costs are of code and constants in flash), and
        branches and loops, which depend on data.
        """
        kernel = lowered.kernels[number]
        usual = not (kernel.copied or kernel.nested)
        key = operator_key(lowered, number) if usual else None
        known = self.known.get(key) if key else None
        name = kernel_name(key.kernel) if key else OF_ALL
        return known or self._scaled(self.fallback.cost(lowered, number), name)

    def within(self, graph: Graph) -> MeasuredCostModel:
        """This model with the fallback `within` the graph; known costs stay."""
        return replace(self, fallback=self.fallback.within(graph))

    def copies(self, sizes: Sequence[int]) -> Cost:
        """The known cost of copies of so many bytes each; otherwise the estimate."""
        known = self.known.get(copies_key(sizes))
        return known or self._scaled(self.fallback.copies(sizes), COPIES)

    def _scaled(self, estimate: Cost, kernel: str) -> Cost:
        count = estimate.count * self.scale
        correction = self.corrections.get(kernel) or self.corrections.get(OF_ALL)
        if correction is not None and estimate.count:
            count = correction.of(count)
        return Cost(round(count), estimate.basis)


def measured_model(
    rows: Iterable[Measurement],
    fallback: CostModel,
    corrections: Mapping[str, Correction] = MappingProxyType({}),
) -> CostModel:
    """A model from the rows and corrections of one board and build; the fallback if it can use none
    of them.

    Cycles come before instructions: rows in instructions are of no use where anything is known in
    cycles.
    """
    measured = tuple(rows)
    units = {fallback.unit, *(row.unit for row in measured)}
    unit = CYCLES if CYCLES in units else INSTRUCTIONS
    usable = tuple(row for row in measured if row.unit == unit)
    corrected = corrections if fallback.unit == CYCLES else MappingProxyType({})
    if not usable and not corrected:
        return fallback
    scale, expected = 1.0, sum(row.estimate for row in usable)
    if unit != fallback.unit and expected:
        scale = sum(row.count for row in usable) / expected
    known = {row.key: Cost(row.count, row.basis) for row in usable}
    return MeasuredCostModel(MappingProxyType(known), unit, fallback, scale, corrected)
