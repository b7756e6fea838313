"""Operators that change names, layouts and types of tensors: they have no kernel of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.onnx import quantisation
from toolchain.frontends.onnx.builder import Value
from toolchain.frontends.onnx.layout import Layout
from toolchain.frontends.onnx.model import Node, dtype_code
from toolchain.frontends.onnx.operators.older import given
from toolchain.frontends.onnx.operators.row import Older, Operator, Trait
from toolchain.frontends.onnx.operators.tensors import Tensors
from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.frontends.onnx.writing import Writer
from toolchain.ir import DType
from toolchain.ops.unary.cast import Cast

CAST = "Cast"
_TYPES = MappingProxyType({1: DType.FLOAT32, 6: DType.INT32, 7: DType.INT64, 9: DType.BOOL})
"""By ONNX's number of the element type, the types that Cast makes."""


def _cast(tensors: Tensors, node: Node) -> None:
    """Cast. A real value is float32 already; other changes of type are operators."""
    builder, value = tensors.builder, tensors.value(node, 0)
    source, to = builder.tensor(value.tensor).dtype, _TYPES.get(int(node.attributes["to"]))
    if to is None or (value.stored and source is DType.INT8):
        raise RefusedError("a change to or from narrow integers", "quantise instead")
    if source in (DType.INT8, DType.FLOAT32) and to is DType.FLOAT32:
        tensors.define(node.outputs[0], value)
        return
    value = builder.real(value)
    tensor = builder.add_tensor(node.outputs[0], builder.tensor(value.tensor).shape, to, None)
    builder.add_op("cast", node.name or node.outputs[0], Cast(to), [value.tensor], [tensor])
    whole = to in (DType.INT32, DType.INT64)
    made = Value(tensor, value.layout, None if whole else UNIT, whole)
    tensors.define(node.outputs[0], made)


def _older_cast(writer: Writer) -> None:
    to = writer.node.attributes["to"]
    code = dtype_code(str(to)) if isinstance(to, str) else to
    writer.put(replace(writer.node, attributes={"to": code}))


def _transpose(tensors: Tensors, node: Node) -> None:
    rank = len(tensors.shapes[node.inputs[0]])
    permutation = list(node.attributes.get("perm", range(rank)[::-1]))
    if sorted(permutation) != list(range(rank)):
        raise InputError(f"{node} permutes {rank} dimensions by {permutation}")
    if node.inputs[0] in tensors.constants:
        constant = tensors.constants[node.inputs[0]]
        tensors.constants[node.outputs[0]] = quantisation.transposed_constant(constant, permutation)
        return
    value = tensors.value(node, 0)
    tensors.define(node.outputs[0], replace(value, layout=value.layout.transposed(permutation)))


def _rename(tensors: Tensors, node: Node) -> None:
    before, shape = tensors.shapes[node.inputs[0]], tensors.shapes[node.outputs[0]]
    if math.prod(before) != math.prod(shape):
        raise InputError(f"{node} makes {list(shape)} of {list(before)}")
    if node.inputs[0] in tensors.constants:
        constant = tensors.constants[node.inputs[0]]
        tensors.constants[node.outputs[0]] = quantisation.reshaped_constant(constant, shape)
        return
    tensors.define(node.outputs[0], _seen_as(tensors, tensors.value(node, 0), shape))


def _seen_as(tensors: Tensors, value: Value, shape: Sequence[int]) -> Value:
    """`value` reshaped; its data move only where they must."""
    layout = value.layout.reshaped(tuple(shape))
    if layout is not None:
        return replace(value, layout=layout)
    ordered = tensors.builder.ordered(value, range(len(value.shape)))
    return replace(ordered, layout=Layout.of(tuple(shape)))


def _space_to_depth(tensors: Tensors, node: Node) -> None:
    value, block = tensors.value(node, 0), int(node.attributes["blocksize"])
    batches, depth, height, width = value.shape
    cut = (batches, depth, height // block, block, width // block, block)
    _move_blocks(tensors, node, value, cut, (0, 3, 5, 1, 2, 4))


def _depth_to_space(tensors: Tensors, node: Node) -> None:
    value, block = tensors.value(node, 0), int(node.attributes["blocksize"])
    batches, depth, height, width = value.shape
    left = depth // block**2
    if node.attributes.get("mode", "DCR") == "DCR":
        cut = (batches, block, block, left, height, width)
        _move_blocks(tensors, node, value, cut, (0, 3, 4, 1, 5, 2))
    else:
        cut = (batches, left, block, block, height, width)
        _move_blocks(tensors, node, value, cut, (0, 1, 4, 2, 5, 3))


def _move_blocks(
    tensors: Tensors, node: Node, value: Value, cut: Sequence[int], permutation: Sequence[int]
) -> None:
    """A reshape, a transpose and a reshape."""
    parts = _seen_as(tensors, value, cut)
    moved = replace(parts, layout=parts.layout.transposed(permutation))
    result = _seen_as(tensors, moved, tensors.shapes[node.outputs[0]])
    tensors.define(node.outputs[0], result)


def _copy(tensors: Tensors, node: Node) -> None:
    if any(tensors.is_used(name) for name in filter(None, node.outputs[1:])):
        raise RefusedError("its mask is used", "export the model for inference")
    if node.inputs[0] in tensors.constants:
        tensors.constants[node.outputs[0]] = tensors.constants[node.inputs[0]]
    else:
        tensors.define(node.outputs[0], tensors.value(node, 0))


def _older_dropout(writer: Writer) -> None:
    writer.put(replace(writer.node, inputs=writer.node.inputs[:1], attributes={}))


_MOVES = Trait.KEEPS_VALUES
_RENAMES = Trait.KEEPS_VALUES | Trait.STAYS_QUANTISED
_AXES = Older(13, given(("axes", np.int64)))

ROWS = (
    Operator(CAST, Trait.IN_TABLES, arranges=_cast, older=Older(6, _older_cast)),
    Operator("Transpose", _RENAMES, arranges=_transpose),
    Operator("Flatten", _RENAMES, arranges=_rename),
    Operator("Reshape", _RENAMES, arranges=_rename, older=Older(5, given(("shape", np.int64)))),
    Operator("Squeeze", _RENAMES, arranges=_rename, older=_AXES),
    Operator("Unsqueeze", _RENAMES, arranges=_rename, older=_AXES),
    Operator("Identity", _RENAMES, arranges=_copy),
    Operator("Dropout", _RENAMES, arranges=_copy, older=Older(12, _older_dropout)),
    Operator("DepthToSpace", _MOVES, arranges=_depth_to_space, modes=("DCR", "CRD")),
    Operator("SpaceToDepth", _MOVES, arranges=_space_to_depth),
)
