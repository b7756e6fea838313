"""A ReLU after an operator that can clamp its own output is merged into that operator.

This is exact where the ReLU's input and output share scale and zero point: it then only clamps
stored values, to the bounds that the operator would clamp to. A float32 ReLU is not merged, because
a fused one would clamp infinity too.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, cast

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.unary.relu import Relu
from toolchain.passes._pass import Prepared


@dataclass(frozen=True)
class MergeRelus:
    """Merge a ReLU into the operator before it."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        merged: dict[int, Op] = {}
        dropped: set[int] = set()
        for index, op in enumerate(graph.ops):
            if not isinstance(op.attributes, Relu):
                continue
            producer = graph.producers.get(op.inputs[0])
            if producer is None or producer in merged or producer in dropped:
                continue
            before = _clamping(graph.ops[producer], op, op.attributes, graph)
            if before is not None:
                merged[producer] = before
                dropped.add(index)
        if not merged:
            return prepared
        ops = [merged.get(i, op) for i, op in enumerate(graph.ops) if i not in dropped]
        return prepared.with_graph(graph.with_ops(ops))


def _clamping(before: Op, relu: Op, attributes: Relu, graph: Graph) -> Op | None:
    """The operator that writes the ReLU's output; None where the two cannot merge."""
    between, y = graph.input(relu, 0), graph.output(relu)
    alone = len(graph.consumers[between.name]) == 1 and between.name not in graph.outputs
    if not alone or between.quantisation != y.quantisation or y.quantisation is None:
        return None
    name = attributes.bounds.value
    if name not in Activation.__members__ or len(before.outputs) != 1:
        return None
    before_fields = {
        entry.name: getattr(before.attributes, entry.name) for entry in fields(before.attributes)
    }
    if before_fields.get("activation") is not Activation.NONE:
        return None
    clamped = replace(cast(Any, before.attributes), activation=Activation[name])
    return replace(before, outputs=relu.outputs, attributes=clamped)
