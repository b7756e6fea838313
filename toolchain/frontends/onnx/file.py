"""Parses an ONNX file and checks its contents, without their meaning."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from toolchain.errors import InputError
from toolchain.frontends.onnx.beside import is_outside
from toolchain.frontends.onnx.functions import without_functions
from toolchain.frontends.onnx.model import Array, End, FileModel, Node, dtype_name
from toolchain.frontends.onnx.operators import operator
from toolchain.frontends.onnx.operators.integers import of_reals
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)

LARGEST_TENSOR_ELEMENTS = 1 << 28
_STANDARD_DOMAINS = ("", "ai.onnx")
_LARGEST_RANK = 8


def read_file(data: bytes) -> FileModel:
    """Parse and check. Raises InputError if the file is not a valid ONNX model."""
    model = _parse(data)
    graph = model.graph
    if not graph.node:
        raise InputError("the model has no operators")
    check_names(graph, "the model")
    constants = _initialisers(graph)
    inputs = tuple(_end(value) for value in graph.input if value.name not in constants)
    outputs = tuple(_end(value) for value in graph.output)
    if not outputs:
        raise InputError("the model has no outputs")
    nodes = tuple(read_node(index, node) for index, node in enumerate(graph.node))
    _check_names(nodes, constants, inputs, outputs)
    versions = {imported.domain: imported.version for imported in model.opset_import}
    opset = max((versions.get(domain, 0) for domain in _STANDARD_DOMAINS), default=0)
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= opset <= newest:
        raise InputError(
            f"the model asks for version {opset} of the ONNX operators; the installed onnx package "
            f"knows versions 1 to {newest}"
        )
    for node, proto in zip(nodes, graph.node, strict=True):
        _check_attributes(node, proto, opset)
    return FileModel(_in_order(nodes, constants, inputs), constants, inputs, outputs, opset)


def _parse(data: bytes) -> onnx.ModelProto:
    parse = onnx.load_model_from_string
    try:
        model = parse(data)
    except Exception as error:  # protobuf's own kinds, which differ between its implementations
        raise InputError("not an ONNX file, or a truncated one") from error
    if not model.HasField("graph"):
        raise InputError("not an ONNX file, or a truncated one: it holds no graph")
    return without_functions(model)


def _initialisers(graph: onnx.GraphProto) -> dict[str, Array]:
    if graph.sparse_initializer:
        raise InputError("the model has sparse initialisers; store them dense")
    constants: dict[str, Array] = {}
    for tensor in graph.initializer:
        if tensor.name in constants:
            raise InputError(f"two initialisers are named {tensor.name!r}")
        constants[tensor.name] = tensor_data(tensor, f"initialiser {tensor.name!r}")
    return constants


def check_names(graph: onnx.GraphProto, owner: str) -> None:
    """Raise InputError for an input, output or initialiser of `owner` whose name is not UTF-8."""
    ends = (*graph.input, *graph.output, *graph.initializer)
    _check_text(owner, (end.name for end in ends))


def _check_text(owner: str, names: Iterable[object]) -> None:
    """Raise InputError for a name of `owner` that is not UTF-8: protobuf leaves it as bytes."""
    if any(isinstance(name, bytes) for name in names):
        raise InputError(f"{owner} has a name that is no text (not UTF-8)")


def tensor_data(tensor: onnx.TensorProto, what: str) -> Array:
    """The data of a TensorProto. Raises InputError where its parts contradict each other."""
    if is_outside(tensor):  # bytes without a path: there is nothing to look beside
        raise InputError(
            f"{what} lies in another file; save the model with its data inside "
            "(torch.onnx.export(..., external_data=False), or onnx.save_model(..., "
            "save_as_external_data=False))"
        )
    check_shape(tensor.dims, what)
    try:
        data = onnx.numpy_helper.to_array(tensor)
    except Exception as error:  # onnx raises many kinds for contradictory tensors
        raise InputError(f"{what} is corrupt: its type, shape and data disagree") from error
    if data.shape != tuple(tensor.dims):
        raise InputError(f"{what} is corrupt: its shape and data disagree")
    return data


def check_shape(dims: Iterable[int], what: str) -> tuple[int, ...]:
    """The shape, if it is valid and not too large. Raises InputError."""
    shape = tuple(int(dim) for dim in dims)
    if len(shape) > _LARGEST_RANK:
        raise InputError(
            f"{what} has {len(shape)} dimensions; at most {_LARGEST_RANK} are possible"
        )
    if any(dim < 0 for dim in shape) or math.prod(shape) > LARGEST_TENSOR_ELEMENTS:
        raise InputError(f"{what} has the impossible shape {list(shape)}")
    return shape


def _end(value: onnx.ValueInfoProto) -> End:
    if not value.type.HasField("tensor_type"):
        raise InputError(f"{value.name!r} is not a tensor; sequences and maps cannot be compiled")
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return End(value.name, dtype_name(kind.elem_type), None)
    dims = tuple(
        int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value > 0 else None
        for dim in kind.shape.dim
    )
    if any(dim.HasField("dim_value") and dim.dim_value < -1 for dim in kind.shape.dim):
        raise InputError(f"{value.name!r} has a negative dimension")
    check_shape((dim or 1 for dim in dims), repr(value.name))
    return End(value.name, dtype_name(kind.elem_type), dims)


_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "approximate": ("none", "tanh"),
        "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
        "coordinate_transformation_mode": (
            *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners"),
            *("asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"),
        ),
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    }
)
"""Attributes of any operator that choose by name, and what there is to choose."""


def _check_attributes(node: Node, proto: onnx.NodeProto, opset: int) -> None:
    """Raise InputError where attributes or operands are not what ONNX defines for the operator.

    The QLinear forms of ONNX Runtime have the attributes of what they quantise, and others.
    """
    standard = proto.domain in _STANDARD_DOMAINS
    name = proto.op_type if standard else of_reals(proto.op_type)
    try:
        schema = onnx.defs.get_schema(name, opset)
    except onnx.defs.SchemaError:  # an operator of another domain, or newer than the opset
        return
    for attribute in proto.attribute:
        known = schema.attributes.get(attribute.name)
        if known is None and standard:
            raise InputError(f"{node} has an attribute {attribute.name!r}; ONNX knows none such")
        wanted = "INT" if known is None else str(known.type).rsplit(".", 1)[-1]
        given = onnx.AttributeProto.AttributeType.Name(attribute.type)
        if wanted != given:
            raise InputError(
                f"attribute {attribute.name!r} of {node} is of type {given}, not {wanted}"
            )
        value = node.attributes[attribute.name]
        modes = operator(name).modes
        choices = modes if attribute.name == "mode" else _CHOICES.get(attribute.name)
        if choices and value not in choices:
            raise InputError(
                f"attribute {attribute.name!r} of {node} is {value!r}, none of {', '.join(choices)}"
            )
        if any(isinstance(x, float) and math.isnan(x) for x in _items(value)):
            raise InputError(f"attribute {attribute.name!r} of {node} is not a number")
    if not standard:
        return
    missing = [a.name for a in schema.attributes.values() if a.required]
    for attribute_name in missing:
        if attribute_name not in node.attributes:
            raise InputError(f"{node} lacks its attribute {attribute_name!r}")
    for operands, count, least, most in (
        ("inputs", len(proto.input), schema.min_input, schema.max_input),
        ("outputs", len(proto.output), schema.min_output, schema.max_output),
    ):
        if not least <= count <= most:
            raise InputError(f"{node} has {count} {operands}; ONNX gives it {least} to {most}")


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else (value,)


def name_of(node: onnx.NodeProto) -> str:
    """The name of a node's operator, with the domain of one that is not standard."""
    known = node.domain in _STANDARD_DOMAINS
    return str(node.op_type if known else f"{node.domain}.{node.op_type}")


def read_node(index: int, node: onnx.NodeProto) -> Node:
    """An operator with its attributes as plain values. Raises InputError."""
    attribute_names = (attribute.name for attribute in node.attribute)
    names = (node.op_type, node.domain, node.name, *node.input, *node.output, *attribute_names)
    _check_text(f"operator {index}", names)
    if not node.op_type:
        raise InputError(f"operator {index} has no type")
    operator = name_of(node)
    where = f"operator {index} ({operator} {node.name!r})"
    attributes: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.name in attributes:
            raise InputError(f"{where} has two attributes {attribute.name!r}")
        if attribute.type == onnx.AttributeProto.TENSOR:
            attributes[attribute.name] = tensor_data(attribute.t, f"a constant of {where}")
            continue
        try:
            value = onnx.helper.get_attribute_value(attribute)
        except Exception as error:
            raise InputError(f"attribute {attribute.name!r} of {where} is corrupt") from error
        value = _text(value)
        items = [_text(item) for item in value] if _is_repeated(value) else value
        attributes[attribute.name] = items
    return Node(index, operator, node.name, tuple(node.input), tuple(node.output), attributes)


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _is_repeated(value: Any) -> bool:
    return not isinstance(value, str | int | float) and hasattr(value, "__len__")


def _check_names(
    nodes: tuple[Node, ...],
    constants: Mapping[str, Array],
    inputs: tuple[End, ...],
    outputs: tuple[End, ...],
) -> None:
    """Check that every tensor is defined once, and that everything that is read is defined."""
    defined = set(constants)
    for end in inputs:
        if not end.name or end.name in defined:
            raise InputError(f"two inputs of the model are named {end.name!r}")
        defined.add(end.name)
    for node in nodes:
        for name in filter(None, node.outputs):
            if name in defined:
                raise InputError(f"{node} writes {name!r}, which is already defined")
            defined.add(name)
    for node in nodes:
        for name in filter(None, node.inputs):
            if name not in defined:
                raise InputError(f"{node} reads {name!r}, which nothing defines")
    listed: set[str] = set()
    for end in outputs:
        if end.name not in defined:
            raise InputError(f"nothing computes the model's output {end.name!r}")
        if end.name in listed:
            raise InputError(f"the model lists its output {end.name!r} twice")
        listed.add(end.name)


def _in_order(
    nodes: tuple[Node, ...], constants: Mapping[str, Array], inputs: tuple[End, ...]
) -> tuple[Node, ...]:
    """The nodes in the file's order where that is topological, else sorted. Refuses cycles.

    Tensors that branches and bodies read of the graph around them count as inputs. ONNX Runtime's
    quantiser does not count them, and may put an If before the operators that compute them.
    """
    known = {*constants, *(end.name for end in inputs)}
    made = {name for node in nodes for name in node.outputs if name}
    users: dict[str, list[int]] = {}
    missing: list[int] = []
    for place, node in enumerate(nodes):
        read = {name for name in node.inputs if name}
        for value in node.attributes.values():
            if isinstance(value, onnx.GraphProto):
                read |= _read_within(value) & made - set(node.outputs)
        needs = read - known
        for name in needs:
            users.setdefault(name, []).append(place)
        missing.append(len(needs))
    ready = [place for place, count in enumerate(missing) if count == 0]
    order: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        order.append(node)
        for name in filter(None, node.outputs):
            for user in users.get(name, ()):
                missing[user] -= 1
                if missing[user] == 0:
                    heapq.heappush(ready, user)
    if len(order) != len(nodes):
        stuck = next(node for node, count in zip(nodes, missing, strict=True) if count)
        raise InputError(f"the graph has a cycle through {stuck}")
    return tuple(order)


def _read_within(graph: onnx.GraphProto) -> set[str]:
    """Names that the operators of a branch or body read, graphs inside of it included."""
    names: set[str] = {end.name for end in graph.output}
    for node in graph.node:
        names.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= _read_within(attribute.g)
    return names
