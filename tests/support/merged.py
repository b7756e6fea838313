"""Many small graphs as one, so that one firmware tests them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolchain.ir import Graph


def merged(graphs: Sequence[Graph], name: str = "merged") -> Graph:
    """The disjoint union: names get the number of their graph as a prefix."""
    tensors, ops, inputs, outputs = [], [], [], []
    for number, graph in enumerate(graphs):
        new = {old: f"g{number}_{old}" for old in graph.tensors} | {"": ""}
        tensors += [replace(t, name=new[t.name]) for t in graph.tensors.values()]
        ops += [
            replace(
                op,
                name=f"g{number}_{op.name}",
                inputs=tuple(new[t] for t in op.inputs),
                outputs=tuple(new[t] for t in op.outputs),
            )
            for op in graph.ops
        ]
        inputs += [new[t] for t in graph.inputs]
        outputs += [new[t] for t in graph.outputs]
    return Graph.build(name, tensors, ops, inputs, outputs)
