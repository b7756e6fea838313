"""Several graphs side by side in one, so that one firmware tries them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolchain.ir import Graph, State


def merged(graphs: Sequence[Graph], name: str = "merged") -> Graph:
    """Inputs and outputs in the order of the graphs; names get the prefix `g<index>_`."""
    tensors, ops, inputs, outputs, states = [], [], [], [], []
    for index, graph in enumerate(graphs):

        def renamed(names: Sequence[str], prefix: str = f"g{index}_") -> tuple[str, ...]:
            return tuple(prefix + n if n else "" for n in names)

        tensors += [replace(t, name=renamed([t.name])[0]) for t in graph.tensors.values()]
        ops += [
            replace(
                op,
                name=renamed([op.name])[0],
                inputs=renamed(op.inputs),
                outputs=renamed(op.outputs),
                part_of=renamed([op.part_of])[0],
            )
            for op in graph.ops
        ]
        inputs += renamed(graph.inputs)
        outputs += renamed(graph.outputs)
        states += [State(*renamed([s.input, s.output]), s.initial) for s in graph.states]
    return Graph.build(name, tensors, ops, inputs, outputs, states)
