"""An operator that dequantises by itself reads int8 instead of a DEQUANTIZE's result.

The end of a detector looks at few of its boxes, and in int8 all take a quarter of the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.ir import DType
from toolchain.passes._pass import Prepared
from toolchain.passes._rewrite import live_ops, reading

_KINDS = frozenset({"detection_postprocess"})


@dataclass(frozen=True)
class ReadStored:
    """Let operators that dequantise by themselves read int8."""

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        stored = {
            op.outputs[0]: op.inputs[0]
            for op in graph.ops
            if op.kind == "dequantize" and graph.input(op, 0).dtype is DType.INT8
        }
        ops = [reading(op, stored) if op.kind in _KINDS else op for op in graph.ops]
        return prepared.with_graph(graph.with_ops(live_ops(ops, graph.kept)))
