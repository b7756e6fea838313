"""Operators that are written as several others, and ONNX's own functions.

ONNX itself defines many operators as functions of others (LogSoftmax, GroupNormalization,
Attention, ...). An operator that no reader knows is replaced by its definition.
"""

from __future__ import annotations

from dataclasses import replace

from toolchain.errors import InputError
from toolchain.frontends.onnx.control_flow import written_out
from toolchain.frontends.onnx.model import FileModel, Node, names_of
from toolchain.frontends.onnx.operators import operator
from toolchain.frontends.onnx.operators.unread import IF, LOOP
from toolchain.frontends.onnx.protos import function_body
from toolchain.frontends.onnx.quantisation import DEQUANTIZE
from toolchain.frontends.onnx.writing import Shapes, Writer
from toolchain.frontends.written_out import WrittenOut


def compose(model: FileModel, shapes: Shapes, written: WrittenOut) -> FileModel:
    """The model with composed operators written as several others. `written`: counts the operators
    that loops and branches of the file have become.

    `shapes` may lack tensors; an operator whose operands it lacks stays. Raises InputError where an
    operator's operands contradict each other.
    """
    nodes: list[Node] = []
    constants, names = dict(model.constants), names_of(model)
    stored: set[str] = set()
    for node in model.nodes:
        if node.operator == DEQUANTIZE and node.inputs[0] in constants:
            stored.add(node.outputs[0])
        if node.operator in (IF, LOOP):
            body = written_out(node, constants, model.opset, names, written)
            nodes += (node,) if body is None else body.nodes
            constants.update({} if body is None else body.constants)
            continue
        told = all(name in shapes or name in constants for name in node.inputs if name)
        row = operator(node.operator)
        if row.composed is not None and told:
            values = stored | constants.keys()
            writer = Writer(node, dict(constants), model.opset, names, shapes, values)
            try:
                row.composed(writer)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise InputError(f"{node} contradicts itself: {error}") from error
            if writer.nodes:
                nodes += writer.nodes
                constants.update(writer.constants)
                continue
        if told and not row.stays and "." not in node.operator:
            body = function_body(node, constants, shapes, model.opset, names)
            if body is not None:
                nodes += body.nodes
                constants.update(body.constants)
                continue
        nodes.append(node)
    return replace(model, nodes=tuple(nodes), constants=constants)
