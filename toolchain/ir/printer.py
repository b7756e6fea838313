"""A graph as text: one line an operator, for people and for golden files."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import MISSING, fields
from enum import Enum

import numpy as np

from toolchain.ir.graph import Attributes, Graph, Op
from toolchain.ir.tensor import Tensor


def graph_text(graph: Graph) -> str:
    """The graph in its own order of operators; constants by shape and checksum."""
    lines = [f"graph {graph.name}"]
    lines += [f"input {_typed(graph.tensors[name])}" for name in graph.inputs]
    lines += [_operator(op, graph) for op in graph.ops]
    lines += [f"output {name}" for name in graph.outputs]
    return "\n".join(lines) + "\n"


def _operator(op: Op, graph: Graph) -> str:
    inputs = ", ".join(_operand(graph.tensors[name]) if name else "-" for name in op.inputs)
    options = "".join(f" {key}={value}" for key, value in _options(op.attributes))
    outputs = ", ".join(_typed(graph.tensors[name]) for name in op.outputs)
    return f"{op.name}: {op.kind}({inputs}){options} -> {outputs}"


def _options(attributes: Attributes) -> Iterable[tuple[str, str]]:
    """Fields that differ from their default."""
    for entry in fields(attributes):
        value = getattr(attributes, entry.name)
        if entry.default is MISSING or value != entry.default:
            yield entry.name, _value(value)


def _value(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return repr(value).replace(" ", "")


def _operand(tensor: Tensor) -> str:
    """An activation by its name; a constant by its type, quantisation and checksum."""
    if tensor.constant is None:
        return tensor.name
    checksum = zlib.crc32(np.ascontiguousarray(tensor.constant).tobytes())
    return f"{_type(tensor)} #{checksum:08x}"


def _typed(tensor: Tensor) -> str:
    return f"{tensor.name}: {_type(tensor)}"


def _type(tensor: Tensor) -> str:
    dims = "x".join(str(size) for size in tensor.shape)
    text = f"{tensor.dtype.value}[{dims}]"
    q = tensor.quantisation
    if q is None:
        return text
    if q.per_channel:
        return f"{text} scale {min(q.scales):.6g}..{max(q.scales):.6g} along {q.axis}"
    return f"{text} scale {q.scale:.6g} zero {q.zero_point}"
