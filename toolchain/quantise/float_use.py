"""The part of a model that computes in float32, and the savings of int8."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from toolchain.boards import board as find_board
from toolchain.cost.predicted import predicted_model
from toolchain.ir import DType
from toolchain.memory.plan import Plan
from toolchain.passes.refuse_float import computes_in_float
from toolchain.report.text import size


@dataclass(frozen=True)
class FloatUse:
    """How many operators compute in float32, of all; and what the model would need in int8.

    An operator in blocks counts as one.

    Bytes of weights and arena are given as they are, and as they would be in int8, approximately.
    `speedup`: how many times faster int8 is predicted to be. `software`: the core has no
    floating-point unit.
    """

    operators: int
    of: int
    weight_bytes: int
    int8_weight_bytes: int
    arena_bytes: int
    int8_arena_bytes: int
    speedup: float
    software: bool

    @property
    def text(self) -> str:
        """One warning for people."""
        cost = f"; as int8 the model would run about {self.speedup:.1f} times as fast"
        how = " in software, for want of a floating-point unit" if self.software else ""
        begin = f"{self.operators} of {self.of} operators compute in float32{how}"
        if self.int8_weight_bytes > 0.9 * self.weight_bytes:
            return begin + cost
        return (
            f"{begin}; in int8 the model would need about {size(self.int8_weight_bytes)} of "
            f"weights, not {size(self.weight_bytes)}, about {size(self.int8_arena_bytes)} of "
            f"arena, not {size(self.arena_bytes)}, and run about {self.speedup:.1f} times as fast"
        )


def float_json(plan: Plan) -> dict[str, Any]:
    """The field `float` of `--json`; nothing if no operator computes in float32."""
    use = float_use(plan)
    return {} if use is None else {"float": asdict(use)}


def float_use(plan: Plan) -> FloatUse | None:
    """The use of float32 in a plan; None if no operator computes in it."""
    graph, target = plan.graph, find_board(plan.board)
    floats = [op for op in graph.ops if computes_in_float(op, graph)]
    if not floats:
        return None
    model = predicted_model(target)
    costs = {op.name: model.cost(plan.lowered, i).count for i, op in enumerate(graph.ops)}
    saved = sum(costs[op.name] - model.as_integers(op, graph) for op in floats)
    total = max(sum(costs.values()), 1)
    weights = plan.weight_bytes
    constants = [t for t in graph.tensors.values() if t.is_constant and t.dtype is DType.FLOAT32]
    narrow = sum(t.size_bytes - t.size_bytes // 4 for t in constants)
    live = [t.size_bytes for t in graph.activations()]
    share = sum(t.size_bytes for t in graph.activations() if t.dtype is DType.FLOAT32)
    return FloatUse(
        operators=len({op.counted_as[0] for op in floats}),
        of=len({op.counted_as[0] for op in graph.ops}),
        weight_bytes=weights,
        int8_weight_bytes=weights - narrow,
        arena_bytes=plan.arena.size_bytes,
        int8_arena_bytes=round(plan.arena.size_bytes * (1 - 0.75 * share / max(sum(live), 1))),
        speedup=total / max(total - saved, 1),
        software=not target.core.fpu,
    )
