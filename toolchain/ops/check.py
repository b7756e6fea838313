"""The graph verifier (`ir.verify`) with the shape rules of all operator kinds."""

from __future__ import annotations

import math

from toolchain.ir import DType, Graph, Op
from toolchain.ir.verify import InvalidGraphError, verify
from toolchain.ops import specs
from toolchain.ops.movement import input_rows
from toolchain.ops.spec import Quantised

_WIDE = frozenset({DType.INT16, DType.INT32, DType.INT64})


def _infer(op: Op, graph: Graph) -> tuple[tuple[tuple[int, ...], DType], ...]:
    spec = specs().get(op.kind)
    if spec is None:
        raise InvalidGraphError(f"there is no operator kind {op.kind!r}")
    if not isinstance(op.attributes, spec.attribute_classes):
        raise InvalidGraphError(f"attributes are {type(op.attributes).__name__}")
    for name, value in vars(op.attributes).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"its {name} is {value}")
    quantised = spec.form(op, graph).quantised
    _check_quantisation(op, graph, quantised)
    _check_weights(op, graph, quantised)
    return tuple((t.shape, t.dtype) for t in spec.infer(op, graph))


def _check_weights(op: Op, graph: Graph, wanted: Quantised) -> None:
    """Raise ValueError where weights beside int16 activations have a zero point other than 0."""
    operands = graph.input_tensors(op)
    if not operands or operands[0] is None or operands[0].dtype is not DType.INT16:
        return
    for index in wanted.per_channel:
        weights = operands[index] if index < len(operands) else None
        if weights is None or weights.quantisation is None or not any(weights.q.zero_points):
            continue
        raise ValueError(
            f"{weights.name!r} beside int16 activations has the zero point "
            f"{weights.q.zero_points[0]}, where kernels take 0 for granted; quantise the weights "
            "symmetrically"
        )


def _check_quantisation(op: Op, graph: Graph, wanted: Quantised) -> None:
    """Raise ValueError where a tensor is not quantised as the kind needs it."""
    for index, x in enumerate(graph.input_tensors(op)):
        several = x is not None and x.quantisation is not None and x.q.per_channel
        if several and not wanted.stored and index not in wanted.per_channel:
            name = op.inputs[index]
            raise ValueError(f"{name!r} is quantised per channel; quantise it per tensor")
    outputs = [graph.tensors[name] for name in op.outputs if name in graph.tensors]
    tensors = [t for t in (*graph.input_tensors(op), *outputs) if t is not None]
    known = [tensor for tensor in tensors if tensor.quantisation is not None]
    for tensor in known:
        others = [zero for zero in tensor.q.zero_points if zero != wanted.wide_zero]
        taken = not wanted.stored and wanted.wide_zero is not None
        if taken and tensor.dtype in _WIDE and others:
            raise ValueError(
                f"{tensor.dtype.value} tensor {tensor.name!r} has the zero point {others[0]}, "
                f"where kernels take {wanted.wide_zero} for granted; convert the model with that"
            )
        if not wanted.alike or not outputs or tensor.dtype is not outputs[0].dtype:
            continue
        if outputs[0].quantisation is not None and tensor.quantisation != outputs[0].quantisation:
            raise ValueError(
                f"{tensor.name!r} and {outputs[0].name!r} are quantised differently; "
                "put a quantize operator between them"
            )


def check(graph: Graph) -> Graph:
    """Return the graph if it keeps all rules of `ir.verify`, and takes every row of an input that
    arrives by rows once; raise InvalidGraphError otherwise.
    """
    verify(graph, _infer)
    if graph.pushed is not None:
        _check_rows(graph, graph.pushed.input)
    return graph


def _check_rows(graph: Graph, name: str) -> None:
    takers = [graph.ops[index] for index in graph.consumers[name]]
    for op in takers:
        if op.kind != input_rows.KIND:
            raise InvalidGraphError(
                f"operator {op.name!r} reads the input {name!r}, which arrives by rows"
            )
    taken = sorted((input_rows.rows_of(op) for op in takers), key=lambda rows: rows.begin)
    there = 0
    for rows in taken:
        if rows.begin != there:
            raise InvalidGraphError(f"row {min(rows.begin, there)} of {name!r} is not taken once")
        there = rows.end
    if not taken or there != taken[-1].shape[taken[-1].axis]:
        raise InvalidGraphError(f"not all rows of {name!r} are taken")
