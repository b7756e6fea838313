"""An ONNX file as plain values: nodes, constants, inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.ir.names import Names
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)

Array = NDArray[np.generic]
OLDEST_FORMS = 13
"""Operators have at least the form of this opset after `rewriting.in_new_forms`."""


@dataclass(frozen=True)
class Node:
    """One operator. `index` is its place in the file; `operator` has its domain unless standard."""

    index: int
    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"operator {self.index} ({self.operator} {self.name!r})"


@dataclass(frozen=True)
class End:
    """An input or output of the model; `shape` has None where the file leaves a dimension
    undefined.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class FileModel:
    """A model as its file has it. `constants` are by name; `opset`: that of the standard
    operators."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    opset: int


def names_of(model: FileModel) -> Names:
    """Fresh names of tensors: none that a tensor of the model has, or of a graph in an operator."""
    names = Names(model.constants)
    names.take(end.name for end in (*model.inputs, *model.outputs))
    graphs: list[Any] = []
    for node in model.nodes:
        names.take((*node.inputs, *node.outputs))
        graphs += [value for value in node.attributes.values() if is_graph(value)]
    while graphs:
        graph = graphs.pop()
        names.take(value.name for value in (*graph.input, *graph.output, *graph.initializer))
        for part in graph.node:
            names.take((*part.input, *part.output))
            graphs += [attribute.g for attribute in part.attribute if attribute.HasField("g")]
    return names


def needed(nodes: Sequence[Node], outputs: Iterable[End]) -> tuple[Node, ...]:
    """The operators but those whose results nothing reads, such as the QuantizeLinear that a
    quantiser puts beside an operator of a branch."""
    wanted, kept = {end.name for end in outputs}, list[Node]()
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            wanted.update(node.inputs)
            kept.append(node)
    return tuple(reversed(kept))


def is_graph(value: object) -> bool:
    """Whether an attribute holds a graph: a branch, or a body."""
    return isinstance(value, onnx.GraphProto)


def dtype_name(code: int) -> str:
    """NumPy's name for an ONNX element type; the ONNX name where NumPy has none."""
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(code))
    except Exception:
        return f"element type {code}"


def dtype_code(name: str) -> int:
    """The number of an element type by its ONNX name. Raises InputError if there is none such."""
    try:
        return int(onnx.TensorProto.DataType.Value(name))
    except ValueError as error:
        raise InputError(f"{name!r} is no element type of ONNX") from error


def forms_opset(opset: int) -> int:
    """The opset whose forms the operators of a file of `opset` have."""
    return max(opset, OLDEST_FORMS)
