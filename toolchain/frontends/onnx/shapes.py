"""Every tensor's shape, by ONNX's own rules, and every value known before the model runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.onnx.compositions import compose
from toolchain.frontends.onnx.evaluation import evaluate
from toolchain.frontends.onnx.file import check_shape
from toolchain.frontends.onnx.model import (
    Array,
    End,
    FileModel,
    Node,
    dtype_name,
    forms_opset,
    needed,
)
from toolchain.frontends.onnx.operators import Trait, operator
from toolchain.frontends.onnx.operators.unread import SHAPE
from toolchain.frontends.onnx.protos import model_proto, node_proto, type_code
from toolchain.frontends.onnx.quantisation import DEQUANTIZE, dequantised_constant
from toolchain.frontends.written_out import WrittenOut
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)

_MOST_ROUNDS = 8
_OF_INTEGERS = re.compile(r"\(op_type:(\w+).*unsupported type: tensor\((u?int\d+)\)")
"""ONNX's own words on an operator that it does not define on integers."""
_SMALL_ELEMENTS = 1024
_LARGEST_FOLD_ELEMENTS = 1 << 24
_LONGEST_SHAPE = 1 << 22


@dataclass(frozen=True)
class ShapedModel:
    """`shapes`: of every tensor. `inputs` and `outputs` have no undefined dimensions any more."""

    model: FileModel
    shapes: Mapping[str, tuple[int, ...]]


def resolve(model: FileModel) -> ShapedModel:
    """Fix the batch size, infer shapes, compute what is constant.

    `model` has no Constant operators. Operators are written as others where they can be.

    Raises InputError if shapes stay undefined, contradict one another or are far too large.
    """
    model, written = _fix_batch(model), WrittenOut()
    for _ in range(_MOST_ROUNDS):
        pending = any(map(_is_pending, model.nodes))
        try:
            shapes = _infer(model, strict=not pending)
        except InputError:
            if not pending:
                raise
            shapes = {name: tuple(data.shape) for name, data in model.constants.items()}
        simpler = compose(_fold(model, shapes), shapes, written)
        if simpler.nodes == model.nodes:
            break
        model = simpler
    if pending:
        shapes = _infer(model, strict=True)
    model = replace(model, nodes=needed(model.nodes, model.outputs))
    open_shapes = [
        (node, name) for node in model.nodes for name in node.outputs if name and name not in shapes
    ]
    if open_shapes:
        _check_known(model)
        node, name = open_shapes[0]
        raise InputError(
            f"{node} gives {name!r}, whose shape is known only when it runs, although all inputs "
            "have fixed shapes; export the model without shapes that depend on values"
        )
    for node in model.nodes:
        empty = [name for name in node.outputs if name and 0 in shapes[name]]
        if empty:
            raise InputError(f"{node} gives the empty tensor {empty[0]!r}")
    return ShapedModel(model, MappingProxyType(shapes))


def _is_pending(node: Node) -> bool:
    """Whether others may come to stand for a standard operator."""
    return is_standard(node.operator) and not operator(node.operator).stays


def is_standard(operator: str) -> bool:
    """Whether ONNX itself defines the operator, so that the shapes of its results can be told."""
    return "." not in operator and onnx.defs.has(operator)


def _check_known(model: FileModel) -> None:
    """Check an operator. Raises InputError for one that is newer than the opset that the file
    names."""
    for node in model.nodes:
        if "." in node.operator:
            continue
        try:
            onnx.defs.get_schema(node.operator, forms_opset(model.opset))
        except onnx.defs.SchemaError as error:
            raise InputError(
                f"{node} does not exist in opset {model.opset}, which the file names; export "
                "the model with a newer opset"
            ) from error


def with_shapes(model: FileModel, given: Mapping[str, tuple[int, ...]]) -> FileModel:
    """The model with these input shapes. Raises InputError where the file has others."""
    known = {end.name: end for end in model.inputs}
    for name, shape in given.items():
        if name not in known:
            names = ", ".join(known)
            raise InputError(f"--input-shape: there is no input {name!r}; the inputs are {names}")
        declared = known[name].shape
        if declared is None:
            continue
        fits = len(declared) == len(shape) and all(
            fixed in (None, size) for fixed, size in zip(declared, shape, strict=True)
        )
        if not fits:
            written = "x".join("?" if size is None else str(size) for size in declared)
            asked = "x".join(map(str, shape))
            raise InputError(
                f"--input-shape {name}={asked}: the file has {written}, of which only ? is open"
            )
    inputs = (replace(end, shape=given.get(end.name, end.shape)) for end in model.inputs)
    return replace(model, inputs=tuple(inputs))


def _fix_batch(model: FileModel) -> FileModel:
    inputs = []
    for end in model.inputs:
        if end.shape is None:
            raise InputError(
                f"the file does not say the shape of the input {end.name!r}; say it with "
                f"--input-shape {shlex.quote(end.name)}=1x3x192x192"
            )
        shape = tuple(1 if dim is None and axis == 0 else dim for axis, dim in enumerate(end.shape))
        if None in shape:
            sizes = "x".join("?" if size is None else str(size) for size in shape)
            raise InputError(
                f"dimension {shape.index(None)} of the input {end.name!r} is open; only the batch "
                f"may be. Fix it with --input-shape {shlex.quote(end.name)}={sizes}, with a number "
                "for each ?"
            )
        inputs.append(replace(end, shape=shape))
    return replace(model, inputs=tuple(inputs))


def _proto(model: FileModel, opset: int) -> onnx.ModelProto:
    """The model for ONNX's shape inference: large constants stand as inputs, by shape alone."""
    initialisers, inputs = [], [_value(end) for end in model.inputs]
    for name, data in model.constants.items():
        if data.size <= _SMALL_ELEMENTS:
            initialisers.append(onnx.numpy_helper.from_array(data, name))
        else:
            inputs.append(onnx.helper.make_tensor_value_info(name, type_code(data), data.shape))
    nodes = [node_proto(node) for node in model.nodes]
    outputs = (end.name for end in model.outputs)
    return model_proto(nodes, inputs, outputs, opset, initialisers)


def ranks(model: FileModel) -> dict[str, int]:
    """How many dimensions each tensor has that ONNX can tell of, in the file's own forms."""
    inferred = onnx.shape_inference.infer_shapes(_proto(model, model.opset)).graph
    rank_of = {name: data.ndim for name, data in model.constants.items()}
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        if value.type.tensor_type.HasField("shape"):
            rank_of[value.name] = len(value.type.tensor_type.shape.dim)
    return rank_of


def _value(end: End) -> onnx.ValueInfoProto:
    try:
        code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(end.dtype))
    except Exception as error:
        raise InputError(f"the input {end.name!r} has the {end.dtype}") from error
    return onnx.helper.make_tensor_value_info(end.name, code, end.shape)


def _infer(model: FileModel, *, strict: bool) -> dict[str, tuple[int, ...]]:
    try:
        inferred = onnx.shape_inference.infer_shapes(
            _proto(model, forms_opset(model.opset)),
            check_type=strict,
            strict_mode=strict,
            data_prop=not _grows(model),
        )
    except Exception as error:  # onnx raises its own kinds, and RuntimeError, and others
        reason = str(error).strip().splitlines()
        last = reason[-1] if reason else type(error).__name__
        if found := _OF_INTEGERS.search(last):
            operator, dtype = found.groups()
            raise InputError(
                f"it has {operator} of {dtype}, which ONNX does not define; put a "
                "DequantizeLinear or a Cast to float before it, or use ConvInteger, MatMulInteger "
                "or QLinearConv"
            ) from error
        raise InputError(f"the model contradicts itself: {last}") from error
    shapes: dict[str, tuple[int, ...]] = {
        name: tuple(data.shape) for name, data in model.constants.items()
    }
    graph = inferred.graph
    declared = {end.name: end.dtype for end in model.outputs}
    for value in graph.output:
        constant = model.constants.get(value.name)
        known = constant is not None or value.type.tensor_type.elem_type
        computed = (
            dtype_name(value.type.tensor_type.elem_type)
            if constant is None
            else str(constant.dtype)
        )
        if known and computed != declared[value.name]:
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


def _grows(model: FileModel) -> bool:
    """Whether Concats make a long vector of constants, all of which ONNX's inference would carry
    along as if it were a shape. Vectors that are shapes are short.
    """
    known = {name: data.size for name, data in model.constants.items() if data.ndim <= 1}
    for node in model.nodes:
        given = [known.get(name, 0) for name in node.inputs]
        joins = Trait.JOINS in operator(node.operator).traits
        size = sum(given) if joins else max(given, default=0)
        if size > _LONGEST_SHAPE:
            return True
        known |= dict.fromkeys(node.outputs, size)
    return False


def _fold(model: FileModel, shapes: Mapping[str, tuple[int, ...]]) -> FileModel:
    """Compute what depends on constants alone, dequantised ones included."""
    constants = dict(model.constants)
    quantised: dict[str, Node] = {}
    reals: dict[str, Array] = {}

    def known(name: str) -> Array:
        if name in constants:
            return constants[name]
        if name not in reals:
            maker = quantised[name]
            given = {one: known(one) for one in maker.inputs if one}
            if maker.operator == DEQUANTIZE:
                constant = dequantised_constant(maker, given[maker.inputs[0]], given)
                reals[name] = constant.real.astype(np.float32)
            else:
                reals.update(evaluate(maker, given, model.opset))
        return reals[name]

    nodes = []
    for node in model.nodes:
        given = [name for name in node.inputs if name]
        traits = operator(node.operator).traits
        if node.operator == SHAPE and node.inputs[0] in shapes:
            start, end = node.attributes.get("start", 0), node.attributes.get("end")
            shape = shapes[node.inputs[0]][start:end]
            constants[node.outputs[0]] = np.array(shape, dtype=np.int64)
        elif (
            "." in node.operator
            or Trait.NEVER_FOLDED in traits
            or any(name not in constants and name not in quantised for name in given)
            or not (_is_small(node, shapes) or _stays_small(node, constants))
        ):
            nodes.append(node)
        elif Trait.STAYS_QUANTISED in traits and (
            node.operator == DEQUANTIZE or node.inputs[0] in quantised
        ):
            quantised[node.outputs[0]] = node
            nodes.append(node)
        else:
            try:
                values = {name: known(name) for name in given}
            except UnsupportedError:  # reported where the operator is read
                nodes.append(node)
            else:
                constants.update(evaluate(node, values, model.opset))
    return replace(model, nodes=tuple(nodes), constants=constants)


def _stays_small(node: Node, constants: Mapping[str, Array]) -> bool:
    """Whether the operator's outputs are small whatever their shapes are: its inputs are."""
    sizes = [constants[name].size if name in constants else _SMALL_ELEMENTS for name in node.inputs]
    enlarges = Trait.ENLARGES in operator(node.operator).traits
    return sum(sizes) < _SMALL_ELEMENTS and not enlarges


def _is_small(node: Node, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether the operator's outputs have known and sensible sizes."""
    named = [name for name in node.outputs if name]
    sizes = [int(np.prod(shapes[name], dtype=np.int64)) for name in named if name in shapes]
    return len(sizes) == len(named) and sum(sizes) <= _LARGEST_FOLD_ELEMENTS
