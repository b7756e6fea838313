"""Several graphs side by side in one, so that one firmware tries them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolchain.ir.graph import Graph, Op, State
from toolchain.ir.tensor import Tensor


def merged(graphs: Sequence[Graph], name: str = "merged") -> Graph:
    """Inputs and outputs in the order of the graphs; names get the prefix `g<index>_`."""
    tensors: list[Tensor] = []
    ops: list[Op] = []
    inputs: list[str] = []
    outputs: list[str] = []
    states: list[State] = []
    for index, graph in enumerate(graphs):

        def renamed(name: str, prefix: str = f"g{index}_") -> str:
            return prefix + name if name else ""

        tensors += [replace(t, name=renamed(t.name)) for t in graph.tensors.values()]
        ops += [
            replace(
                op,
                name=renamed(op.name),
                inputs=tuple(map(renamed, op.inputs)),
                outputs=tuple(map(renamed, op.outputs)),
                part_of=renamed(op.part_of),
            )
            for op in graph.ops
        ]
        inputs += map(renamed, graph.inputs)
        outputs += map(renamed, graph.outputs)
        states += [State(renamed(s.input), renamed(s.output), s.initial) for s in graph.states]
    return Graph.build(name, tensors, ops, inputs, outputs, states)
