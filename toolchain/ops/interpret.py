"""Runs a graph by the NumPy references of its operators: exact, and slow."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

import numpy as np

from toolchain.errors import InputError, UnsupportedError
from toolchain.ir import Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.arithmetic.fixed_point import ScaleError
from toolchain.ops.spec import Array

_ABSENT = np.zeros(0)


def evaluate(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of one operator. `inputs` has an empty array for an optional input that is
    absent.

    Raises UnsupportedError, which names the operator, where its scales leave its numbers undefined.
    """
    try:
        return spec_of(op.kind).reference(op, graph, inputs)
    except ScaleError as error:
        raise UnsupportedError(f"{op.kind} {op.name!r}: {error}", operator=op.name) from error


def interpret(
    graph: Graph, inputs: Sequence[Array], states: MutableMapping[str, Array] | None = None
) -> tuple[Array, ...]:
    """The graph's outputs for `inputs`, each in the graph's order.

    `states` holds what the graph keeps between runs, by the name of the state's input. A missing
    state starts at its initial value; afterwards all states are in it. Raises InputError where an
    input has another shape or element type than its tensor.
    """
    if len(inputs) != len(graph.inputs):
        raise InputError(f"the model has {len(graph.inputs)} inputs, {len(inputs)} were given")
    values: dict[str, Array] = {}
    for name, value in zip(graph.inputs, inputs, strict=True):
        tensor = graph.tensors[name]
        if (value.shape, value.dtype) != (tensor.shape, tensor.dtype.numpy):
            raise InputError(f"input {tensor} was given {value.dtype.name}{list(value.shape)}")
        values[name] = value
    memory = {} if states is None else states
    for state in graph.states:
        values[state.input] = memory.get(state.input, state.initial)
    for tensor in graph.tensors.values():
        if tensor.constant is not None:
            values[tensor.name] = tensor.constant
    last_use = {name: users[-1] for name, users in graph.consumers.items() if users}
    for index, op in enumerate(graph.ops):
        given = [values[name] if name else _ABSENT for name in op.inputs]
        values.update(zip(op.outputs, evaluate(op, graph, given), strict=True))
        for name in {*op.present_inputs(), *op.outputs}:
            if last_use.get(name, index) == index and name not in graph.kept:
                del values[name]
    memory.update({state.input: values[state.output] for state in graph.states})
    return tuple(values[name] for name in graph.outputs)
