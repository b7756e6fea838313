"""Operators that read only constants are computed at compile time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.ir import Graph, Op, Tensor
from toolchain.ops.interpret import evaluate
from toolchain.passes._pass import Prepared

LARGEST_RESULT_BYTES = 1 << 24


@dataclass(frozen=True)
class FoldConstants:
    """Operators stay whose results are above 16 MiB, which no board could hold, or hold NaN or
    infinity, which no constant may; so do loops and branches: a loop may never end.
    """

    def run(self, prepared: Prepared) -> Prepared:
        graph = prepared.graph
        tensors = dict(graph.tensors)
        kept: list[Op] = []
        for op in graph.ops:
            inputs = [tensors[name] for name in op.present_inputs()]
            if not all(tensor.is_constant for tensor in inputs) or _must_stay(op, graph):
                kept.append(op)
                continue
            results = _results(op, graph, tensors)
            if not all(value.dtype.kind != "f" or np.isfinite(value).all() for value in results):
                kept.append(op)
                continue
            for name, value in zip(op.outputs, results, strict=True):
                value.setflags(write=False)
                tensors[name] = replace(tensors[name], constant=value)
        return prepared.with_graph(graph.with_ops(kept, tensors.values()))


def _must_stay(op: Op, graph: Graph) -> bool:
    if any(name in graph.outputs for name in op.outputs) or op.attributes.nested:
        return True
    return sum(graph.tensors[name].size_bytes for name in op.outputs) > LARGEST_RESULT_BYTES


def _results(
    op: Op, graph: Graph, tensors: dict[str, Tensor]
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.generic]], ...]:
    known = [tensors[name].constant if name else None for name in op.inputs]
    given = [np.zeros(0) if value is None else value for value in known]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return tuple(np.array(value) for value in evaluate(op, graph, given))
