"""Every tensor's shape, by ONNX's own rules, and every value known before the model runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.file import Array, End, FileModel, Node, check_shape, dtype_name
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
    from onnx import reference
else:
    onnx = lazy("onnx", ONNX)
    reference = lazy("onnx.reference", ONNX)

FOLDED = frozenset(
    {
        *("Add", "And", "Cast", "Ceil", "Concat", "ConstantOfShape", "Div", "Equal", "Expand"),
        *("Floor", "Gather", "Greater", "Less", "Max", "Min", "Mul", "Neg", "Not", "Or", "Pow"),
        *("QuantizeLinear", "Range", "ReduceProd", "Reshape", "Shape", "Size", "Slice", "Split"),
        *("Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Unsqueeze", "Where"),
    }
)
"""Operators that are computed at import if all their inputs are constant."""

_SMALL_ELEMENTS = 1024
_LARGEST_FOLD_ELEMENTS = 1 << 24


@dataclass(frozen=True)
class ShapedModel:
    """`shapes`: of every tensor. `inputs` and `outputs` have no undefined dimensions any more."""

    model: FileModel
    shapes: Mapping[str, tuple[int, ...]]


def resolve(model: FileModel) -> ShapedModel:
    """Fix the batch size, infer shapes, compute what is constant.

    Raises InputError if shapes stay undefined, contradict one another or are far too large.
    """
    model = _constants_from_nodes(_fix_batch(model))
    for _ in range(4):
        shapes = _infer(model)
        folded = _fold(model, shapes)
        if len(folded.nodes) == len(model.nodes):
            break
        model = folded
    open_shapes = [
        name for node in model.nodes for name in node.outputs if name and name not in shapes
    ]
    if open_shapes:
        _check_known(model)
        raise InputError(
            f"the shape of {open_shapes[0]!r} cannot be told before the model runs; export the "
            "model with fixed shapes (onnxruntime.tools.make_dynamic_shape_fixed)"
        )
    for node in model.nodes:
        empty = [name for name in node.outputs if name and 0 in shapes[name]]
        if empty:
            raise InputError(f"{node} gives the empty tensor {empty[0]!r}")
    return ShapedModel(model, MappingProxyType(shapes))


def _check_known(model: FileModel) -> None:
    """Raises InputError for an operator that is newer than the opset that the file names."""
    for node in model.nodes:
        if "." in node.operator:
            continue
        try:
            onnx.defs.get_schema(node.operator, max(model.opset, 1))
        except onnx.defs.SchemaError as error:
            raise InputError(
                f"{node} does not exist in opset {model.opset}, which the file names; convert it "
                "again with a newer opset"
            ) from error


def _fix_batch(model: FileModel) -> FileModel:
    inputs = []
    for end in model.inputs:
        if end.shape is None:
            raise InputError(f"the file does not say the shape of the input {end.name!r}")
        shape = tuple(1 if dim is None and axis == 0 else dim for axis, dim in enumerate(end.shape))
        if None in shape:
            raise InputError(
                f"dimension {shape.index(None)} of the input {end.name!r} is open; only the batch "
                "may be. Fix it with onnxruntime.tools.make_dynamic_shape_fixed"
            )
        inputs.append(replace(end, shape=shape))
    return replace(model, inputs=tuple(inputs))


def _constants_from_nodes(model: FileModel) -> FileModel:
    """Constant operators become constants."""
    constants = dict(model.constants)
    nodes = []
    for node in model.nodes:
        if node.operator != "Constant":
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
    return replace(model, nodes=tuple(nodes), constants=constants)


def _proto(model: FileModel) -> onnx.ModelProto:
    """The model for ONNX's shape inference: large constants stand as inputs, by shape alone."""
    initialisers, inputs = [], [_value(end) for end in model.inputs]
    for name, data in model.constants.items():
        if data.size <= _SMALL_ELEMENTS:
            initialisers.append(onnx.numpy_helper.from_array(data, name))
        else:
            inputs.append(onnx.helper.make_tensor_value_info(name, _code(data), data.shape))
    nodes = [node_proto(node) for node in model.nodes]
    outputs = [onnx.ValueInfoProto(name=end.name) for end in model.outputs]
    graph = onnx.helper.make_graph(nodes, "model", inputs, outputs, initialisers)
    imports = [onnx.helper.make_opsetid("", max(model.opset, 10))]
    return onnx.helper.make_model(graph, opset_imports=imports)


def _code(data: Array) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(data.dtype))


def _value(end: End) -> onnx.ValueInfoProto:
    try:
        code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(end.dtype))
    except Exception as error:
        raise InputError(f"the input {end.name!r} has the {end.dtype}") from error
    return onnx.helper.make_tensor_value_info(end.name, code, end.shape)


def node_proto(node: Node) -> onnx.NodeProto:
    attributes: dict[str, Any] = {
        name: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in node.attributes.items()
        if not (isinstance(value, list) and not value)
    }
    return onnx.helper.make_node(
        node.operator, list(node.inputs), list(node.outputs), node.name, **attributes
    )


def _infer(model: FileModel) -> dict[str, tuple[int, ...]]:
    try:
        inferred = onnx.shape_inference.infer_shapes(
            _proto(model), check_type=True, strict_mode=True, data_prop=True
        )
    except Exception as error:  # onnx raises its own kinds, and RuntimeError, and others
        reason = str(error).strip().splitlines()
        raise InputError(
            f"the model contradicts itself: {reason[-1] if reason else type(error).__name__}"
        ) from error
    shapes: dict[str, tuple[int, ...]] = {
        name: tuple(data.shape) for name, data in model.constants.items()
    }
    graph = inferred.graph
    declared = {end.name: end.dtype for end in model.outputs}
    for value in graph.output:
        computed = dtype_name(value.type.tensor_type.elem_type)
        if value.type.tensor_type.elem_type and computed != declared[value.name]:
            raise InputError(
                f"the output {value.name!r} is declared as {declared[value.name]}, but the model "
                f"computes {computed}"
            )
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            continue
        if all(dim.HasField("dim_value") for dim in kind.shape.dim):
            dims = [dim.dim_value for dim in kind.shape.dim]
            shapes[value.name] = check_shape(dims, repr(value.name))
    return shapes


def _fold(model: FileModel, shapes: Mapping[str, tuple[int, ...]]) -> FileModel:
    constants = dict(model.constants)
    nodes = []
    for node in model.nodes:
        if node.operator == "Shape" and node.inputs[0] in shapes:
            start, end = node.attributes.get("start", 0), node.attributes.get("end")
            shape = shapes[node.inputs[0]][start:end]
            constants[node.outputs[0]] = np.array(shape, dtype=np.int64)
        elif _is_constant(node, constants, shapes):
            constants.update(evaluate(node, constants, model.opset))
        else:
            nodes.append(node)
    return replace(model, nodes=tuple(nodes), constants=constants)


def _is_constant(
    node: Node, constants: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]
) -> bool:
    if node.operator not in FOLDED or not all(n in constants for n in node.inputs if n):
        return False
    sizes = [int(np.prod(shapes[name], dtype=np.int64)) for name in node.outputs if name in shapes]
    return len(sizes) == len(node.outputs) and sum(sizes) <= _LARGEST_FOLD_ELEMENTS


def evaluate(node: Node, constants: Mapping[str, Array], opset: int) -> dict[str, Array]:
    """The outputs of a node for constant inputs, by name. Raises InputError if it cannot be
    computed.
    """
    feeds = {name: constants[name] for name in node.inputs if name}
    graph = onnx.helper.make_graph(
        [node_proto(node)],
        "constant",
        [onnx.helper.make_tensor_value_info(n, _code(d), d.shape) for n, d in feeds.items()],
        [onnx.ValueInfoProto(name=name) for name in node.outputs],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", max(opset, 10))]
    )
    try:
        results = reference.ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:  # whatever the operator's own implementation raises
        raise InputError(f"{node} cannot be computed from its constants") from error
    return {
        name: np.asarray(value) for name, value in zip(node.outputs, results, strict=True) if name
    }
