"""The predicted cost of one inference of a plan, operator by operator."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.cost import Cost, CostModel
from toolchain.cost.analytic import AnalyticCostModel
from toolchain.cost.key import Key, copies_key, operator_key
from toolchain.memory.moves import moves
from toolchain.memory.plan import Plan


@dataclass(frozen=True)
class Latency:
    """Predicted cost of one inference: `counts` per graph operator, in `unit`."""

    counts: tuple[int, ...]
    unit: str
    measured_share: float

    @property
    def total(self) -> int:
        return sum(self.counts)


def predict_latency(plan: Plan, model: CostModel | None = None) -> Latency:
    """The cost of one inference on the plan's board, operator by operator."""
    costs_from = model or AnalyticCostModel()
    costs = [_cost(plan, number, costs_from) for number in range(len(plan.graph.ops))]
    total = sum(cost.count for cost in costs)
    measured = sum(cost.count for cost in costs if cost.measured)
    return Latency(
        counts=tuple(cost.count for cost in costs),
        unit=costs_from.unit,
        measured_share=measured / total if total else 0.0,
    )


def _cost(plan: Plan, number: int, costs_from: CostModel) -> Cost:
    """What lies in place costs nothing; what only copies costs copies."""
    wanted = moves(plan.graph.ops[number], plan.graph, plan.arena)
    if wanted is None:
        return costs_from.cost(plan.lowered, number)
    if not wanted:
        return Cost(0, measured=True)
    return costs_from.copies([move.size_bytes for move in wanted], plan.lowered.core)


def kernel_keys(plan: Plan) -> tuple[Key | None, ...]:
    """The key under which each operator of the graph is measured; None if it has no code."""
    keys: list[Key | None] = []
    for number, op in enumerate(plan.graph.ops):
        wanted = moves(op, plan.graph, plan.arena)
        if wanted is None:
            keys.append(operator_key(plan.lowered, number))
        else:
            keys.append(copies_key([move.size_bytes for move in wanted]) if wanted else None)
    return tuple(keys)
