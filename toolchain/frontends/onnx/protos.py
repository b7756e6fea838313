"""Values of `file` as onnx has them, and back: single operators, for onnx's own functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.file import read_node
from toolchain.frontends.onnx.model import Array, FileModel, Node, forms_opset
from toolchain.frontends.onnx.operators.unread import CONSTANT
from toolchain.ir.names import Names
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
    from onnx import inliner
else:
    onnx = lazy("onnx", ONNX)
    inliner = lazy("onnx.inliner", ONNX)


def type_code(data: Array) -> int:
    """ONNX's number of the array's element type."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(data.dtype))


def node_proto(node: Node) -> onnx.NodeProto:
    """The node as onnx has it. Empty lists among its attributes are left out: they have no type."""
    attributes: dict[str, Any] = {
        name: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in node.attributes.items()
        if not (isinstance(value, list) and not value)
    }
    return onnx.helper.make_node(
        node.operator, list(node.inputs), list(node.outputs), node.name, **attributes
    )


def model_proto(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Iterable[str],
    opset: int,
    constants: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    """A model of these operators, whose `outputs` have any type and shape."""
    ends = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = onnx.helper.make_graph(nodes, "model", inputs, ends, constants)
    imports = [onnx.helper.make_opsetid("", opset)]
    return onnx.helper.make_model(graph, opset_imports=imports)


def constants_from_nodes(model: FileModel) -> FileModel:
    """Constant operators become constants."""
    nodes, constants = _without_constants(model.nodes)
    return replace(model, nodes=nodes, constants={**model.constants, **constants})


def _without_constants(given: Iterable[Node]) -> tuple[tuple[Node, ...], dict[str, Array]]:
    constants: dict[str, Array] = {}
    nodes = []
    for node in given:
        if node.operator != CONSTANT:
            nodes.append(node)
            continue
        if len(node.attributes) != 1 or len(node.outputs) != 1:
            raise InputError(f"{node} does not hold exactly one constant")
        (form, value), *_ = node.attributes.items()
        types: dict[str, type[np.generic]] = {"value_float": np.float32, "value_floats": np.float32}
        types |= {"value_int": np.int64, "value_ints": np.int64}
        if form == "value" and isinstance(value, np.ndarray):
            constants[node.outputs[0]] = value
        elif form in types:
            constants[node.outputs[0]] = np.asarray(value, dtype=types[form])
        else:
            raise InputError(f"{node} holds its constant as {form!r}, which is not supported")
    return tuple(nodes), constants


@dataclass(frozen=True)
class Body:
    """The operators of a function, under names of their own, and their constants."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]


def is_function(operator: str, opset: int) -> bool:
    """Whether ONNX defines a standard operator by others."""
    try:
        schema: Any = onnx.defs.get_schema(operator, forms_opset(opset))  # typed in part
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def function_body(
    node: Node,
    constants: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
    opset: int,
    names: Names,
) -> Body | None:
    """ONNX's definition of the operator by others; None if it has none.

    Operands that are not constant are float32 of the given shapes. `names`: of the tensors inside.
    """
    opset = forms_opset(opset)
    try:
        schema = onnx.defs.get_schema(node.operator, opset)
    except onnx.defs.SchemaError:
        return None
    ends = [
        onnx.helper.make_tensor_value_info(
            name,
            type_code(constants[name]) if name in constants else onnx.TensorProto.FLOAT,
            constants[name].shape if name in constants else shapes[name],
        )
        for name in dict.fromkeys(filter(None, node.inputs))
    ]
    call = node_proto(node)
    given = {attribute.name for attribute in call.attribute}
    for name, known in schema.attributes.items():  # the inliner loses those that are not written
        if name not in given and known.default_value.name:
            call.attribute.append(known.default_value)
    whole = model_proto([call], ends, filter(None, node.outputs), opset)
    wanted = [("", node.operator)]
    try:
        inlined = inliner.inline_selected_functions(whole, wanted, inline_schema_functions=True)
    except Exception:  # whatever onnx raises for a function that it cannot write out
        return None
    parts = inlined.graph.node
    if any(part.op_type == node.operator or _holds_a_graph(part) for part in parts):
        return None
    inside = {name: name for name in ("", *node.inputs, *node.outputs)}

    def named(name: str) -> str:
        if name not in inside:
            inside[name] = names.fresh(f"{node.outputs[0]}/{node.index}/{name}")
        return inside[name]

    made = [
        replace(
            read_node(node.index, part),
            inputs=tuple(map(named, part.input)),
            outputs=tuple(map(named, part.output)),
        )
        for part in parts
    ]
    return Body(*_without_constants(made))


def _holds_a_graph(node: onnx.NodeProto) -> bool:
    return any(attribute.HasField("g") for attribute in node.attribute)
