"""Edits that several passes share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from toolchain.ir import Graph, Op, State, Tensor


def reading(op: Op, names: Mapping[str, str]) -> Op:
    """The operator with the inputs in `names` replaced."""
    inputs = tuple(names.get(name, name) for name in op.inputs)
    return op if inputs == op.inputs else replace(op, inputs=inputs)


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with tensors renamed. A new name must be free, or be renamed itself."""
    if not names:
        return graph

    def new(group: Iterable[str]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in group)

    tensors = {
        names.get(name, name): replace(tensor, name=names.get(name, name))
        for name, tensor in graph.tensors.items()
    }
    ops = tuple(replace(op, inputs=new(op.inputs), outputs=new(op.outputs)) for op in graph.ops)
    states = tuple(
        State(
            names.get(state.input, state.input),
            names.get(state.output, state.output),
            state.initial,
        )
        for state in graph.states
    )
    return replace(
        graph,
        tensors=MappingProxyType(tensors),
        ops=ops,
        inputs=new(graph.inputs),
        outputs=new(graph.outputs),
        states=states,
    )


def same_type(one: Tensor, other: Tensor) -> bool:
    """Whether shape, element type and quantisation are equal."""
    return (one.shape, one.dtype, one.quantisation) == (
        other.shape,
        other.dtype,
        other.quantisation,
    )


def live_ops(ops: Iterable[Op], outputs: Iterable[str]) -> tuple[Op, ...]:
    """The operators, in topological order, that the tensors `outputs` depend on."""
    needed = set(outputs)
    kept = []
    for op in reversed(tuple(ops)):
        if needed.intersection(op.outputs):
            kept.append(op)
            needed.update(op.present_inputs())
    return tuple(reversed(kept))
