"""onnxruntime's static quantiser, with what it cannot quantise worked around or left in float."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.errors import InputError, ThimbleError
from toolchain.ir.names import Names
from toolchain.packages import QUANTIZE, lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", QUANTIZE)

_NORM = "LayerNormalization"
_MOST_EXCLUDED = 8
"""Operators that are left in float, each after another attempt."""


def named(model: onnx.ModelProto) -> None:
    """Give each operator without a name one, so that the quantiser can be told to leave it."""
    names = Names(node.name for node in model.graph.node)
    for node in model.graph.node:
        if not node.name:
            node.name = names.fresh(node.op_type)


def with_flat_norms(model: onnx.ModelProto) -> None:
    """Write layer normalisations over several axes as ones over the last axis of a reshaped tensor.

    onnxruntime's quantiser ends in an error where a gain has more than one axis and an offset.
    Gains that are broadcast stay as they are. Shapes must be inferred.
    """
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    known = (*graph.value_info, *graph.input, *graph.output)
    shapes = {value.name: _shape(value) for value in known}
    names = Names((*constants, *shapes, *(n for node in graph.node for n in node.output)))
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        shape = shapes.get(node.input[0]) if node.op_type == _NORM else None
        gain = constants.get(node.input[1]) if shape else None
        others = [name for name in node.output[1:] if name]
        if shape is None or gain is None or others or tuple(gain.dims) != _over(node, shape):
            nodes.append(node)
            continue
        nodes.extend(_flat_norm(node, graph, constants, shape, names))
    del graph.node[:]
    graph.node.extend(nodes)
    read = {name for node in _all_nodes(graph) for name in node.input}
    read |= {value.name for value in graph.output}
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of the graphs inside of it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _all_nodes(inner)


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """The shape of a value; None for one that is not known in full."""
    dims = value.type.tensor_type.shape.dim
    sizes = tuple(int(dim.dim_value) for dim in dims)
    return sizes if sizes and all(sizes) else None


def _over(node: onnx.NodeProto, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The sizes of the axes over which a layer normalisation goes; None where it is the last one
    alone."""
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
    sizes = shape[axis:]
    return sizes if len(sizes) > 1 else None


def _flat_norm(
    node: onnx.NodeProto,
    graph: onnx.GraphProto,
    constants: Mapping[str, onnx.TensorProto],
    shape: tuple[int, ...],
    names: Names,
) -> list[onnx.NodeProto]:
    """`node` over the last axis, between two reshapes. Gains and offsets are copied: another
    operator may read them as they are."""
    over = constants[node.input[1]].dims
    flat = (*shape[: -len(over)], int(np.prod(over)))

    def constant(stem: str, values: Any) -> str:
        name = names.fresh(stem)
        graph.initializer.append(onnx.numpy_helper.from_array(values, name))
        return name

    parameters = []
    for name in node.input[1:]:
        values = onnx.numpy_helper.to_array(constants[name]) if name in constants else None
        if values is None or values.shape != tuple(over):
            return [node]
        parameters.append(constant(name, values.reshape(-1)))
    there, back = names.fresh(f"{node.input[0]}/flat"), names.fresh(f"{node.output[0]}/flat")
    joined = constant(f"{node.name}/flat", np.array(flat, np.int64))
    apart = constant(f"{node.name}/shape", np.array(shape, np.int64))
    make = onnx.helper.make_node
    kept = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute if a.name != "axis"}
    return [
        make("Reshape", [node.input[0], joined], [there], names.fresh(f"{node.name}/join")),
        make(_NORM, [there, *parameters], [back], node.name, axis=-1, **kept),
        make("Reshape", [back, apart], [node.output[0]], names.fresh(f"{node.name}/part")),
    ]


def excluding(
    quantise: Callable[[list[str]], None], graph: onnx.GraphProto
) -> tuple[tuple[str, str], ...]:
    """Call `quantise` with names of operators to leave in float, at first none; where it ends in an
    error, again without the operator at fault.

    Returns these operators, each with the error. Raises InputError where no operator is at fault,
    or too many.
    """
    left: dict[str, tuple[str, str]] = {}
    logging.disable(logging.WARNING)  # it warns of what it then handles
    try:
        while True:
            try:
                quantise(list(left))
                return tuple(left.values())
            except ThimbleError:
                raise
            except Exception as error:  # onnxruntime's exceptions share no base but this
                node = _at_fault(error.__traceback__, graph)
                where = f" ({node.op_type} {node.name!r})" if node is not None else ""
                if node is None or node.name in left or len(left) == _MOST_EXCLUDED:
                    said = f"onnxruntime cannot quantise the model{where}: {error}"
                    raise InputError(said) from error
                why = f"onnxruntime cannot quantise it ({error})"
                left[node.name] = (f"{node.op_type} ({node.name})", why)
    finally:
        logging.disable(logging.NOTSET)


def _at_fault(trace: TracebackType | None, graph: onnx.GraphProto) -> onnx.NodeProto | None:
    """The operator that the innermost function of a traceback dealt with: its variable is the node
    itself, or the name of a constant that one operator reads."""
    by_name = {node.name: node for node in graph.node}
    readers: dict[str, list[onnx.NodeProto]] = {tensor.name: [] for tensor in graph.initializer}
    for node in graph.node:
        for name in node.input:
            readers.get(name, []).append(node)
    found = None
    while trace is not None:
        variables = trace.tb_frame.f_locals
        owner = getattr(variables.get("self"), "node", None)
        for value in (*variables.values(), owner):
            if isinstance(value, onnx.NodeProto) and value.name in by_name:
                found = by_name[value.name]
            elif isinstance(value, str) and len(readers.get(value, ())) == 1:
                found = readers[value][0]
        trace = trace.tb_next
    return found
