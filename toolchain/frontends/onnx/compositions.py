"""Operators that are written as several others: sums of many, norms, einsum, ONNX's functions.

ONNX itself defines many operators as functions of others (LogSoftmax, GroupNormalization,
Attention, ...). Those that no reader knows are replaced by that definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.control_flow import written_out
from toolchain.frontends.onnx.einsum import Equation, product, summed
from toolchain.frontends.onnx.file import Array, FileModel, Node, names_of
from toolchain.frontends.onnx.picking import (
    pick_elements,
    pick_rows,
    put_elements,
    put_rows,
)
from toolchain.frontends.onnx.protos import function_body
from toolchain.frontends.written_out import WrittenOut
from toolchain.ir.names import Names

CONTROL_FLOW = ("If", "Loop")
Shapes = Mapping[str, tuple[int, ...]]
_ONE_AXIS = 13
_AXES_ARE_INPUTS = 18
"""The first opset whose reductions have their axes as an input; ReduceSum's has them from 13 on."""
_INT64 = 7
"""`TensorProto.INT64`."""
_SMALLEST = float(np.finfo(np.float32).tiny)


@dataclass
class _Writer:
    """The operators that replace `node`, and the constants that they read.

    `known`: tensors whose values are known, dequantised constants included.
    """

    node: Node
    shapes: Shapes
    constants: dict[str, Array]
    known: Set[str]
    opset: int
    names: Names
    nodes: list[Node] = field(default_factory=list)

    def op(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add an operator; returns the name of its result."""
        output = self._name(f"{operator}{len(self.nodes)}")
        self._add(operator, inputs, output, attributes)
        return output

    def answer(self, operator: str, inputs: Sequence[str], **attributes: Any) -> None:
        """Add the operator that gives the node's own result."""
        self._add(operator, inputs, self.node.outputs[0], attributes)

    def constant(self, values: Any, dtype: type[np.generic] = np.float32) -> str:
        name = self._name(f"constant{len(self.constants)}")
        self.constants[name] = np.asarray(values, dtype)
        return name

    def reduction(self, operator: str, x: str, axes: Sequence[int] | None, keep: bool) -> str:
        inputs, attributes = self._reduced(operator, x, axes)
        return self.op(operator, inputs, keepdims=int(keep), **attributes)

    def answer_reduction(self, operator: str, x: str) -> None:
        """The reduction `operator` of `x`, over the axes of the node."""
        inputs, attributes = self._reduced(operator, x, self.axes())
        keep = int(self.node.attributes.get("keepdims", 1))
        self.answer(operator, inputs, keepdims=keep, **attributes)

    def axes(self) -> Sequence[int] | None:
        """Those that a reduction names; None for all."""
        if len(self.node.inputs) > 1 and self.node.inputs[1]:
            given = self.constants.get(self.node.inputs[1])
            if given is None:
                raise InputError(f"{self.node}: its axes are computed while the model runs")
            return [int(axis) for axis in given.reshape(-1)] or None
        return self.node.attributes.get("axes")

    def _reduced(
        self, operator: str, x: str, axes: Sequence[int] | None
    ) -> tuple[list[str], dict[str, Any]]:
        if axes is None:
            return [x], {}
        if operator == "ReduceSum" or self.opset >= _AXES_ARE_INPUTS:
            return [x, self.constant(list(axes), np.int64)], {}
        return [x], {"axes": list(axes)}

    def _add(
        self, operator: str, inputs: Sequence[str], output: str, attributes: Mapping[str, Any]
    ) -> None:
        made = Node(self.node.index, operator, self.node.name, tuple(inputs), (output,), attributes)
        self.nodes.append(made)

    def _name(self, stem: str) -> str:
        return self.names.fresh(f"{self.node.outputs[0]}/{self.node.index}/{stem}")


def compose(
    model: FileModel, shapes: Shapes, known: Collection[str], written: WrittenOut
) -> FileModel:
    """The same model without the operators above. `known`: operators that have readers.
    `written`: what loops and branches of the file have become.

    `shapes` may lack tensors; an operator whose operands it lacks stays.
    """
    nodes: list[Node] = []
    constants, names = dict(model.constants), names_of(model)
    stored: set[str] = set()
    for node in model.nodes:
        if node.operator == "DequantizeLinear" and node.inputs[0] in constants:
            stored.add(node.outputs[0])
        if node.operator in CONTROL_FLOW:
            body = written_out(node, constants, model.opset, names, written)
            nodes += (node,) if body is None else body.nodes
            constants.update({} if body is None else body.constants)
            continue
        told = all(name in shapes or name in constants for name in node.inputs if name)
        recipe = RECIPES.get(node.operator)
        if recipe is not None and told:
            values = stored | constants.keys()
            writer = _Writer(node, shapes, dict(constants), values, model.opset, names)
            recipe(writer)
            if writer.nodes:
                nodes += writer.nodes
                constants.update(writer.constants)
                continue
        if told and node.operator not in known and "." not in node.operator:
            body = function_body(node, constants, shapes, model.opset, names)
            if body is not None:
                nodes += body.nodes
                constants.update(body.constants)
                continue
        nodes.append(node)
    return replace(model, nodes=tuple(nodes), constants=constants)


def _sum(writer: _Writer) -> None:
    """Sum and Mean of any number of operands, one after another as ONNX Runtime adds them."""
    first, *rest = writer.node.inputs
    mean = writer.node.operator == "Mean"
    if not rest:
        writer.answer("Identity", [first])
        return
    for other in rest[: len(rest) if mean else -1]:
        first = writer.op("Add", [first, other])
    if mean:
        writer.answer("Mul", [first, writer.constant(1 / (len(rest) + 1))])
    else:
        writer.answer("Add", [first, rest[-1]])


def _norm(writer: _Writer) -> None:
    """ReduceL1, ReduceL2 and ReduceSumSquare."""
    x, operator = writer.node.inputs[0], writer.node.operator
    terms = writer.op("Abs", [x]) if operator == "ReduceL1" else writer.op("Mul", [x, x])
    if operator != "ReduceL2":
        writer.answer_reduction("ReduceSum", terms)
        return
    keep = bool(writer.node.attributes.get("keepdims", 1))
    writer.answer("Sqrt", [writer.reduction("ReduceSum", terms, writer.axes(), keep)])


def _log_sum(writer: _Writer) -> None:
    """ReduceLogSum and ReduceLogSumExp; the latter less the largest, so that nothing overflows."""
    x, axes = writer.node.inputs[0], writer.axes()
    keep = bool(writer.node.attributes.get("keepdims", 1))
    if writer.node.operator == "ReduceLogSum":
        writer.answer("Log", [writer.reduction("ReduceSum", x, axes, keep)])
        return
    most = writer.reduction("ReduceMax", x, axes, keep=True)
    powers = writer.op("Exp", [writer.op("Sub", [x, most])])
    logarithm = writer.op("Log", [writer.reduction("ReduceSum", powers, axes, keep)])
    if not keep:
        most = writer.reduction("ReduceMax", x, axes, keep=False)
    writer.answer("Add", [logarithm, most])


def _lp_normalization(writer: _Writer) -> None:
    x, attributes = writer.node.inputs[0], writer.node.attributes
    axes = [int(attributes.get("axis", -1))]
    if attributes.get("p", 2) == 1:
        norm = writer.reduction("ReduceSum", writer.op("Abs", [x]), axes, keep=True)
    else:
        squares = writer.reduction("ReduceSum", writer.op("Mul", [x, x]), axes, keep=True)
        norm = writer.op("Sqrt", [squares])
    writer.answer("Div", [x, writer.op("Max", [norm, writer.constant(_SMALLEST)])])


def _softmax(writer: _Writer) -> None:
    """Below opset 13 over all dimensions from `axis` on, which are one here."""
    node, shape = writer.node, writer.shapes[writer.node.inputs[0]]
    axis = int(node.attributes.get("axis", 1)) % max(len(shape), 1)
    whole = math.prod(shape[axis:])
    if writer.opset >= _ONE_AXIS or whole == shape[-1]:
        return
    rows = writer.constant([math.prod(shape[:axis]), whole], np.int64)
    flat = writer.op("Reshape", [node.inputs[0], rows])
    result = writer.op(node.operator, [flat], axis=1)
    writer.answer("Reshape", [result, writer.constant(shape, np.int64)])


def _gemm(writer: _Writer) -> None:
    """With a third operand that is computed, or a constant first one: a product, and a sum."""
    node = writer.node
    added = node.inputs[2] if len(node.inputs) > 2 else ""
    if node.inputs[0] not in writer.known and (not added or added in writer.known):
        return
    operands = []
    for name, flag in zip(node.inputs, ("transA", "transB"), strict=False):
        turned = node.attributes.get(flag, 0)
        operands.append(writer.op("Transpose", [name], perm=[1, 0]) if turned else name)
    product_of = writer.op("MatMul", operands)
    alpha, beta = (float(node.attributes.get(name, 1.0)) for name in ("alpha", "beta"))
    if alpha != 1:
        product_of = writer.op("Mul", [product_of, writer.constant(alpha)])
    if not added:
        writer.answer("Identity", [product_of])
        return
    if beta != 1:
        added = writer.op("Mul", [added, writer.constant(beta)])
    writer.answer("Add", [product_of, added])


def _reverse_sequence(writer: _Writer) -> None:
    """Of sequences that are all as long as the input."""
    node = writer.node
    axis, lengths = int(node.attributes.get("time_axis", 0)), writer.constants.get(node.inputs[1])
    if lengths is None or np.any(lengths != writer.shapes[node.inputs[0]][axis]):
        return
    limits = ([-1], [np.iinfo(np.int64).min], [axis], [-1])
    writer.answer("Slice", [node.inputs[0], *(writer.constant(x, np.int64) for x in limits)])


def _einsum(writer: _Writer) -> None:
    """Pairs of operands become matrix products, from left to right."""
    shapes = [writer.shapes[name] for name in writer.node.inputs]
    equation = Equation.read(str(writer.node.attributes["equation"]), shapes)
    if equation is None:
        return
    x, labels = writer.node.inputs[0], equation.operands[0]
    rest = list(zip(writer.node.inputs[1:], equation.operands[1:], strict=True))
    while rest:
        y, others = rest.pop(0)
        wanted = set(equation.result).union(*(later for _, later in rest))
        x, labels = product(writer, equation.sizes, (x, labels), (y, others), wanted)
    x, labels = summed(writer, x, labels, set(equation.result))
    permutation = [labels.index(label) for label in equation.result]
    writer.answer("Transpose", [x], perm=permutation)


def _one_hot(writer: _Writer) -> None:
    """Indices beside the places 0, 1, ... along the new axis; negative ones count from the end."""
    node = writer.node
    depth, values = (writer.constants.get(name) for name in node.inputs[1:])
    if depth is None or values is None:
        return
    count, rank = int(depth.reshape(-1)[0]), len(writer.shapes[node.inputs[0]]) + 1
    axis = int(node.attributes.get("axis", -1)) % rank
    given = writer.op("Cast", [node.inputs[0]], to=_INT64)
    from_end = writer.op("Add", [given, writer.constant(count, np.int64)])
    negative = writer.op("Less", [given, writer.constant(0, np.int64)])
    place = writer.op("Where", [negative, from_end, given])
    shape = list(writer.shapes[node.inputs[0]])
    shape.insert(axis, 1)
    column = writer.op("Reshape", [place, writer.constant(shape, np.int64)])
    places = np.arange(count).reshape([-1 if a == axis else 1 for a in range(rank)])
    hit = writer.op("Equal", [column, writer.constant(places, np.int64)])
    off, on = (writer.constant(value, values.dtype.type) for value in values)
    writer.answer("Where", [hit, on, off])


RECIPES: Mapping[str, Callable[[_Writer], None]] = MappingProxyType(
    {
        "Einsum": _einsum,
        "GatherElements": pick_elements,
        "GatherND": pick_rows,
        "Gemm": _gemm,
        "LogSoftmax": _softmax,
        "LpNormalization": _lp_normalization,
        "Mean": _sum,
        "OneHot": _one_hot,
        "ReduceL1": _norm,
        "ReduceL2": _norm,
        "ReduceLogSum": _log_sum,
        "ReduceLogSumExp": _log_sum,
        "ReduceSumSquare": _norm,
        "ReverseSequence": _reverse_sequence,
        "ScatterElements": put_elements,
        "ScatterND": put_rows,
        "Softmax": _softmax,
        "Sum": _sum,
    }
)
"""By operator, what writes it as others; it writes nothing where the operator can stay."""
