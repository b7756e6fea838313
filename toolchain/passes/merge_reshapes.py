"""A reshape of a reshape reads the first one's input instead."""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolchain.ir import Op
from toolchain.passes._pass import Prepared
from toolchain.passes._rewrite import live_ops


@dataclass(frozen=True)
class MergeReshapes:
    """Let a reshape of a reshape read the first one's input."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        source: dict[str, str] = {}
        ops: list[Op] = []
        for op in graph.ops:
            merged = op
            if op.kind == "reshape":
                given = source.get(op.inputs[0], op.inputs[0])
                source[op.outputs[0]] = given
                merged = replace(op, inputs=(given,))
            ops.append(merged)
        return prepared.with_graph(graph.with_ops(live_ops(ops, graph.kept)))
