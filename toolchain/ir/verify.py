"""The verifier: rules that every graph keeps from the front end to the plan.

The shape rules are passed in, because operator kinds are in a package above this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toolchain.ir.graph import Graph, InvalidGraphError, Op
from toolchain.ir.tensor import DType, Tensor, is_scale

__all__ = ["InvalidGraphError", "ShapeRule", "verify"]

ShapeRule = Callable[[Op, Graph], Sequence[tuple[tuple[int, ...], DType]]]
"""Shapes and element types of an operator's outputs; raises ValueError for a contradiction."""

_INTEGER_RANGE = {
    DType.INT8: (-128, 127),
    DType.UINT8: (0, 255),
    DType.INT16: (-(2**15), 2**15 - 1),
    DType.INT32: (-(2**31), 2**31 - 1),
    DType.INT64: (-(2**63), 2**63 - 1),
}


def verify(graph: Graph, infer: ShapeRule) -> None:
    """Raise InvalidGraphError unless every rule holds.

    The rules: names resolve and are unique, every tensor has at most one producer, operators are in
    topological order, constants match their type, quantisation is valid, and every output has the
    shape and type that its operator's shape rule derives.
    """
    for name, tensor in graph.tensors.items():
        if name != tensor.name or not name:
            raise InvalidGraphError(f"tensor {tensor.name!r} is filed under {name!r}")
        _check_tensor(tensor)
    _check_ends(graph)
    _check_states(graph)
    _check_order(graph)
    for op in graph.ops:
        _check_types(op, graph, infer)


def _check_tensor(tensor: Tensor) -> None:
    if any(size < 0 for size in tensor.shape):
        raise InvalidGraphError(f"tensor {tensor} has a negative dimension")
    data = tensor.constant
    if data is not None and (data.shape != tensor.shape or data.dtype != tensor.dtype.numpy):
        raise InvalidGraphError(
            f"constant {tensor} holds {data.dtype.name}{list(data.shape)}",
        )
    if data is not None and data.dtype.kind == "f" and not np.isfinite(data).all():
        raise InvalidGraphError(f"the constant tensor {tensor} holds NaN or infinity")
    if data is not None and data.dtype.kind == "b" and (data.view(np.uint8) > 1).any():
        raise InvalidGraphError(f"the constant tensor {tensor} holds bytes other than 0 and 1")
    if data is None and not tensor.elements:
        raise InvalidGraphError(f"tensor {tensor} is empty")
    if tensor.quantisation is not None:
        _check_quantisation(tensor)
    elif tensor.dtype is DType.INT8 and data is None:
        raise InvalidGraphError(f"activation {tensor} has no quantisation")


def _check_quantisation(tensor: Tensor) -> None:
    q = tensor.q
    if not q.scales or len(q.scales) != len(q.zero_points):
        raise InvalidGraphError(
            f"tensor {tensor} has {len(q.scales)} scales and {len(q.zero_points)} zero points"
        )
    if not all(map(is_scale, q.scales)):
        raise InvalidGraphError(f"tensor {tensor} has a scale that is not a positive number")
    if q.per_channel:
        if q.axis is None or not 0 <= q.axis < len(tensor.shape):
            raise InvalidGraphError(f"tensor {tensor} has {len(q.scales)} scales along no axis")
        if tensor.shape[q.axis] != len(q.scales):
            raise InvalidGraphError(
                f"tensor {tensor} has {len(q.scales)} scales along axis {q.axis}"
            )
        if tensor.constant is None:
            raise InvalidGraphError(
                f"activation {tensor} is quantised per channel; quantise it per tensor"
            )
    if tensor.dtype not in _INTEGER_RANGE:
        raise InvalidGraphError(f"tensor {tensor} is quantised")
    low, high = _INTEGER_RANGE[tensor.dtype]
    if not all(low <= zero <= high for zero in q.zero_points):
        raise InvalidGraphError(f"tensor {tensor} has a zero point outside its type")


def _check_ends(graph: Graph) -> None:
    for kind, names in (("input", graph.inputs), ("output", graph.outputs)):
        if len(set(names)) != len(names):
            raise InvalidGraphError(f"the graph lists an {kind} twice")
        for name in names:
            if name not in graph.tensors:
                raise InvalidGraphError(f"the graph's {kind} {name!r} does not exist")
            if graph.tensors[name].is_constant:
                raise InvalidGraphError(f"the graph's {kind} {name!r} is a constant")
    if not graph.outputs:
        raise InvalidGraphError("the graph has no outputs")
    if graph.pushed is not None:
        name, progress = graph.pushed.input, graph.pushed.progress
        if name not in graph.inputs or name in graph.outputs:
            raise InvalidGraphError(f"{name!r}, which arrives by rows, is not an input alone")
        if progress not in graph.tensors or progress in graph.inputs or progress in graph.outputs:
            raise InvalidGraphError(f"the progress of {name!r} has no place of its own")
        if progress in graph.producers or graph.consumers[progress]:
            raise InvalidGraphError(f"an operator reads or writes the progress of {name!r}")


def _check_states(graph: Graph) -> None:
    """Each state has a place of its own, a value of the same type before and after."""
    ends = [name for state in graph.states for name in (state.input, state.output)]
    if len(set(ends)) != len(ends):
        raise InvalidGraphError("a tensor belongs to two states")
    for state in graph.states:
        for name in (state.input, state.output):
            if name not in graph.tensors:
                raise InvalidGraphError(f"the state {name!r} does not exist")
            if name in graph.inputs or name in graph.outputs or graph.tensors[name].is_constant:
                raise InvalidGraphError(f"the state {name!r} is a constant or an end of the graph")
        before, after = graph.tensors[state.input], graph.tensors[state.output]
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            raise InvalidGraphError(f"the state {before} becomes {after}")
        if (state.initial.shape, state.initial.dtype) != (before.shape, before.dtype.numpy):
            raise InvalidGraphError(
                f"the state {before} begins as {state.initial.dtype}{list(state.initial.shape)}"
            )
        if graph.consumers[state.output]:
            raise InvalidGraphError(f"an operator reads the next value of the state {before}")


def _check_order(graph: Graph) -> None:
    known = {*graph.inputs, *graph.sources} | {
        t.name for t in graph.tensors.values() if t.is_constant
    }
    numbers: dict[str, int] = {}
    for number, op in enumerate(graph.ops):
        if not op.name:
            raise InvalidGraphError(f"operator {number} ({op.kind}) has no name")
        first = numbers.setdefault(op.name, number)
        if first != number:
            raise InvalidGraphError(
                f"operators {first} ({graph.ops[first].kind}) and {number} ({op.kind}) are both "
                f"called {op.name!r}"
            )
        for name in op.present_inputs():
            if name not in graph.tensors:
                raise InvalidGraphError(f"operator {op.name!r} reads {name!r}, which is unknown")
            if name not in known:
                raise InvalidGraphError(f"operator {op.name!r} reads {name!r} before it exists")
        if not op.outputs:
            raise InvalidGraphError(f"operator {op.name!r} has no output")
        for name in op.outputs:
            if name not in graph.tensors:
                raise InvalidGraphError(f"operator {op.name!r} writes {name!r}, which is unknown")
            if name in known:
                raise InvalidGraphError(f"operator {op.name!r} writes {name!r}, which has a value")
            known.add(name)
    for name in graph.kept:
        if name not in known:
            raise InvalidGraphError(f"nothing computes the graph's output {name!r}")


def _check_types(op: Op, graph: Graph, infer: ShapeRule) -> None:
    try:
        derived = tuple(infer(op, graph))
    except ValueError as error:
        raise InvalidGraphError(f"operator {op.name!r} ({op.kind}): {error}") from error
    if len(derived) != len(op.outputs):
        raise InvalidGraphError(
            f"operator {op.name!r} ({op.kind}) has {len(op.outputs)} outputs, not {len(derived)}"
        )
    for name, (shape, dtype) in zip(op.outputs, derived, strict=True):
        tensor = graph.tensors[name]
        if (tensor.shape, tensor.dtype) != (shape, dtype):
            raise InvalidGraphError(
                f"operator {op.name!r} ({op.kind}) makes {name!r} {dtype.value}{list(shape)}, "
                f"not {tensor.dtype.value}{list(tensor.shape)}"
            )
