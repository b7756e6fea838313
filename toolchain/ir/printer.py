"""A graph as text: one line per operator, for people and for golden files."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import MISSING, fields
from enum import Enum

import numpy as np

from toolchain.ir.graph import Attributes, Graph, Op, State
from toolchain.ir.tensor import Tensor


def graph_text(graph: Graph) -> str:
    """The graph in its own order of operators.

    Tensors are numbered in the order in which they appear; only the graph's inputs and outputs keep
    their names. Constants and initial values of states are shown by type and checksum.
    """
    numbers: dict[str, str] = {}
    lines = [f"graph {graph.name}"]
    lines += [_declared("input", name, numbers, graph) for name in graph.inputs]
    lines += [_state(state, numbers, graph) for state in graph.states]
    lines += [_operator(op, numbers, graph) for op in graph.ops]
    lines += [f"output {_number(name, numbers)} {name!r}" for name in graph.outputs]
    lines += [
        f"keep {_number(state.output, numbers)} in {_number(state.input, numbers)}"
        for state in graph.states
    ]
    return "\n".join(lines) + "\n"


def _number(name: str, numbers: dict[str, str]) -> str:
    return numbers.setdefault(name, f"%{len(numbers)}")


def _declared(role: str, name: str, numbers: dict[str, str], graph: Graph) -> str:
    return f"{role} {_number(name, numbers)} {name!r}: {_type(graph.tensors[name])}"


def _state(state: State, numbers: dict[str, str], graph: Graph) -> str:
    checksum = zlib.crc32(np.ascontiguousarray(state.initial).tobytes())
    type_ = _type(graph.tensors[state.input])
    return f"state {_number(state.input, numbers)}: {type_} from #{checksum:08x}"


def _operator(op: Op, numbers: dict[str, str], graph: Graph) -> str:
    inputs = ", ".join(_operand(name, numbers, graph) for name in op.inputs)
    outputs = ", ".join(
        f"{_number(name, numbers)}: {_type(graph.tensors[name])}" for name in op.outputs
    )
    options = "".join(f" {key}={value}" for key, value in _options(op.attributes))
    text = f"{op.name}: {op.kind}({inputs}){options} -> {outputs}"
    held = "".join(graph_text(nested) for nested in op.attributes.nested)
    return "\n".join([text, *(f"  {line}" for line in held.splitlines())])


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


def _operand(name: str, numbers: dict[str, str], graph: Graph) -> str:
    """An activation by its number; a constant by its type and checksum; `-` where absent."""
    if not name:
        return "-"
    tensor = graph.tensors[name]
    if tensor.constant is None:
        return _number(name, numbers)
    checksum = zlib.crc32(np.ascontiguousarray(tensor.constant).tobytes())
    return f"{_type(tensor)} #{checksum:08x}"


def _type(tensor: Tensor) -> str:
    dims = "x".join(str(size) for size in tensor.shape)
    text = f"{tensor.dtype.value}[{dims}]"
    q = tensor.quantisation
    if q is None:
        return text
    if q.per_channel:
        return f"{text} scale {min(q.scales):.6g}..{max(q.scales):.6g} along {q.axis}"
    return f"{text} scale {q.scale:.6g} zero {q.zero_point}"
