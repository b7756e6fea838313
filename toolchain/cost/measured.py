"""The cost model that uses measurements, and estimates the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from toolchain.boards import Core
from toolchain.cost import Cost, CostModel
from toolchain.cost.analytic import AnalyticCostModel
from toolchain.cost.database import Measurement
from toolchain.cost.key import Key, copies_key, operator_key
from toolchain.ops.lowering import Lowered


@dataclass(frozen=True)
class MeasuredCostModel:
    """`counts` are measured, in `unit`; other costs are the fallback's, times `scale`.

    `scale` converts the fallback's instructions to `unit`. If the units differ, it is the measured
    cost of the measured kernels divided by their estimated cost; otherwise it is 1.
    """

    counts: Mapping[Key, int]
    unit: str
    scale: float = 1.0
    fallback: CostModel = field(default_factory=AnalyticCostModel)

    def cost(self, lowered: Lowered, number: int) -> Cost:
        """The measured cost of this kernel on this shape; otherwise the estimate."""
        count = self.counts.get(operator_key(lowered, number))
        return self._known(count, lambda: self.fallback.cost(lowered, number))

    def copies(self, sizes: Sequence[int], core: Core) -> Cost:
        """The measured cost of copies of so many bytes each; otherwise the estimate."""
        count = self.counts.get(copies_key(sizes))
        return self._known(count, lambda: self.fallback.copies(sizes, core))

    def _known(self, count: int | None, estimate: Callable[[], Cost]) -> Cost:
        if count is not None:
            return Cost(count, measured=True)
        return Cost(round(estimate().count * self.scale), measured=False)


def measured_model(rows: Iterable[Measurement], fallback: CostModel | None = None) -> CostModel:
    """A model from the measurements of one board and build; the fallback if there are none."""
    estimates = fallback or AnalyticCostModel()
    known = tuple(rows)
    if not known:
        return estimates
    unit = known[0].unit
    expected = sum(row.estimate for row in known)
    scale = 1.0
    if unit != estimates.unit and expected:
        scale = sum(row.count for row in known) / expected
    counts = MappingProxyType({row.key: row.count for row in known if row.unit == unit})
    return MeasuredCostModel(counts, unit, scale, estimates)
