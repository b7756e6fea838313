"""Damaged ONNX files: fields of the protocol buffer at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from tests.support.mutations import FLOATS, INTEGERS

_LONGS = (*INTEGERS, 2**63 - 1, -(2**63), 2**32)
_NAMES = ("", "x", "y", "*/ int x;", "größe", "a" * 300, "node", "%s%n")
_OPERATORS = (
    *("Add", "Mul", "Sub", "Div", "Conv", "ConvTranspose", "Gemm", "MatMul", "Relu", "Clip"),
    *("Sigmoid", "Softmax", "Concat", "Split", "Slice", "Gather", "Transpose", "Reshape", "Pad"),
    *("Resize", "MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum", "ArgMax"),
    *("QuantizeLinear", "DequantizeLinear", "Identity", "Shape", "Cast", "Squeeze", "Unsqueeze"),
    *("LayerNormalization", "Erf", "Pow", "Sqrt", "Where", "Expand", "Tile", "Flatten", "Loop"),
    *("QLinearConv", "QLinearMatMul", "Constant", "ConstantOfShape", "BatchNormalization", "LSTM"),
)
_CANNOT_WRITE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def damaged_onnx(data: bytes, rng: random.Random) -> bytes | None:
    """Up to six fields changed to what few exporters write; None where the writer refuses it."""
    model = onnx.ModelProto.FromString(data)
    try:
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            if model.graph.node:
                rng.choice(_DAMAGES)(model.graph, rng.choice(model.graph.node), model, rng)
        return bytes(model.SerializeToString())
    except _CANNOT_WRITE:
        return None


def _attribute(graph: Any, node: Any, model: Any, rng: random.Random) -> None:
    """Its value, or an item of it."""
    if not node.attribute:
        return
    found = rng.choice(node.attribute)
    if found.type == AttributeProto.INT:
        found.i = rng.choice((*_LONGS, found.i + 1, found.i - 1))
    elif found.type == AttributeProto.FLOAT:
        found.f = rng.choice((*FLOATS, found.f * 2, -found.f))
    elif found.type == AttributeProto.STRING:
        found.s = rng.choice((b"", b"VALID", b"nearest", b"linear", b"\xff\xfe", b"reflect"))
    elif found.type == AttributeProto.INTS:
        _items(found.ints, rng)
    elif found.type == AttributeProto.TENSOR:
        _data(found.t, rng)
    else:
        found.type = rng.randrange(15)


def _items(values: Any, rng: random.Random) -> None:
    how = rng.randrange(5)
    if how == 0 or not values:
        values.append(rng.choice(_LONGS))
    elif how == 1:
        values[rng.randrange(len(values))] = rng.choice(_LONGS)
    elif how == 2:
        at = rng.randrange(len(values))
        values[at] = max(-(2**63), min(2**63 - 1, values[at] + rng.choice((-1, 1, 2))))
    elif how == 3:
        del values[rng.randrange(len(values))]
    else:
        shuffled = list(values)
        rng.shuffle(shuffled)
        values[:] = shuffled


_ATTRIBUTES: dict[str, tuple[Any, ...]] = {
    "axis": (*range(-5, 6), 2**40, 0.5, "channels", [1, 2]),
    "axes": ([0], [1, 2], [-1], [7], [1, 1], 1),
    "perm": ([0, 1], [0, 2, 3, 1], [0, 0, 1, 1], [3, 2, 1, 0], [-1, 0, 1, 2], 3),
    "pads": ([1, 1, 1, 1], [0, 0, 3, 3], [-1, 0, 0, 0], [1, 1], 1),
    "strides": ([2, 2], [0, 1], [1], [-1, 1], [2**40, 1], "two"),
    "dilations": ([2, 2], [0, 1], [1], [1, 2**31]),
    "kernel_shape": ([3, 3], [1, 1], [5], [0, 0], [2**31, 1]),
    "group": (0, 1, 2, 3, -1, 2**40, 1.0),
    "auto_pad": ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "OTHER", 1),
    "ceil_mode": (0, 1, 2),
    "count_include_pad": (0, 1),
    "keepdims": (0, 1, 2, "no"),
    "mode": ("nearest", "linear", "cubic", "reflect", "edge", "constant", "CRD", "DCR", 3),
    "alpha": (0.0, -1.0, 1e30, float("nan"), 1, "one"),
    "beta": (0.0, 2.0, float("inf")),
    "epsilon": (0.0, -1.0, float("nan"), 1e30),
    "transA": (0, 1, 2),
    "transB": (0, 1, -1),
    "to": (0, 1, 2, 3, 6, 7, 9, 10, 16, 99),
    "block_size": (1, 8, 16),
    "blocksize": (0, 1, 2, 3, -2),
    "output_dtype": (0, 2, 3, 4, 5, 17),
    "coordinate_transformation_mode": ("asymmetric", "align_corners", "half_pixel", "tf_crop", ""),
    "nearest_mode": ("floor", "ceil", "round_prefer_ceil", "other"),
    "output_padding": ([1, 1], [5, 5], [-1, 0]),
    "output_shape": ([4, 4], [100, 100], [0]),
    "storage_order": (0, 1),
    "exclude_outside": (0, 1),
    "allowzero": (0, 1),
}


def _other_attribute(graph: Any, node: Any, model: Any, rng: random.Random) -> None:
    """One added, left out, twice there, or of another type."""
    how = rng.randrange(4)
    if node.attribute and how == 0:
        del node.attribute[rng.randrange(len(node.attribute))]
        return
    if node.attribute and how == 1 and rng.random() < 0.2:
        node.attribute.add().CopyFrom(node.attribute[0])
        return
    own = [a.name for a in node.attribute if a.name in _ATTRIBUTES]
    name = rng.choice(own) if own and how == 2 else rng.choice(sorted(_ATTRIBUTES))
    kept = [a for a in node.attribute if a.name != name]
    made = helper.make_attribute(name, rng.choice(_ATTRIBUTES[name]))
    del node.attribute[:]
    node.attribute.extend([*kept, made])


def _operator(graph: Any, node: Any, model: Any, rng: random.Random) -> None:
    if rng.random() < 0.8:
        node.op_type = rng.choice(_OPERATORS)
    else:
        node.domain = rng.choice(("", "ai.onnx", "com.microsoft", "other", "ai.onnx.ml"))


def _names_of(graph: Any) -> list[str]:
    made = [name for node in graph.node for name in (*node.input, *node.output)]
    return sorted({*made, *(t.name for t in graph.initializer), *(v.name for v in graph.input)})


def _operands(graph: Any, node: Any, model: Any, rng: random.Random) -> None:
    names = rng.choice((node.input, node.input, node.output))
    how = rng.randrange(5)
    if names and how == 0:
        names[rng.randrange(len(names))] = rng.choice(_names_of(graph))
    elif names and how == 1:
        names[rng.randrange(len(names))] = rng.choice(_NAMES)
    elif how == 2:
        names.append(rng.choice(_names_of(graph)))
    elif names and how == 3:
        del names[rng.randrange(len(names))]
    else:
        shuffled = list(names)
        rng.shuffle(shuffled)
        names[:] = shuffled


def _data(tensor: Any, rng: random.Random) -> None:
    """Its values, type, or shape; the data mostly with them."""
    try:
        values = np.array(numpy_helper.to_array(tensor))
    except Exception:  # what an earlier change left
        return
    how = rng.randrange(7)
    if how == 0:
        tensor.data_type = rng.choice((*range(24), 99))
        return
    if how == 1:
        tensor.dims.append(rng.choice((0, 1, 2, -1, 2**40)))
        return
    if how == 2 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice((0, 1, 2, 5, -1, 2**62))
        return
    if how == 3:
        values = values.astype(
            rng.choice((np.int8, np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64))
        )
    elif how == 4:
        shape = [max(1, size + rng.choice((-1, 0, 0, 1))) for size in values.shape]
        values = np.resize(values, rng.choice((shape, [*shape, 1], shape[:-1], shape[::-1])))
    else:
        _spoil(values, rng)
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _spoil(values: np.ndarray[Any, Any], rng: random.Random) -> None:
    if not values.size:
        return
    chosen = slice(None) if rng.random() < 0.4 else rng.randrange(values.size)
    flat = values.reshape(-1)
    if values.dtype.kind == "f":
        factor = 2.0 ** rng.uniform(-20, 20)
        with np.errstate(all="ignore"):
            flat[chosen] = flat[chosen] * factor if rng.random() < 0.6 else rng.choice(FLOATS)
    elif values.dtype.kind in "iu":
        info = np.iinfo(values.dtype)
        value = rng.choice((*_LONGS, info.min, info.max, rng.randrange(-4, 5)))
        flat[chosen] = min(max(value, info.min), info.max)
    else:
        flat[chosen] = ~flat[chosen]


def _constant(graph: Any, node: Any, model: Any, rng: random.Random) -> None:
    """Of the node, or any; scales and zero points are constants, too."""
    own = [tensor for tensor in graph.initializer if tensor.name in node.input]
    tensors = own or list(graph.initializer)
    if tensors:
        _data(rng.choice(tensors), rng)


def _constants(graph: Any, node: Any, model: Any, rng: random.Random) -> None:
    """One left out, given in by the caller too, or stored elsewhere."""
    if not graph.initializer:
        return
    at = rng.randrange(len(graph.initializer))
    tensor = graph.initializer[at]
    how = rng.randrange(4)
    if how == 0:
        del graph.initializer[at]
    elif how == 1:
        graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        )
        if rng.random() < 0.5:
            del graph.initializer[at]
    elif how == 2:
        tensor.name = rng.choice((*_NAMES, graph.initializer[0].name))
    else:
        tensor.data_location = TensorProto.EXTERNAL


def _nodes(graph: Any, node: Any, model: Any, rng: random.Random) -> None:
    """One dropped or put in again, or the order changed."""
    how = rng.randrange(4)
    if how == 0:
        graph.node.remove(node)
    elif how == 1:
        graph.node.add().CopyFrom(node)
    elif how == 2 and node.output:
        copy = graph.node.add()
        copy.CopyFrom(node)
        copy.output[0] = f"{node.output[0]}/again"
        if copy.input:
            copy.input[0] = node.output[0]
        graph.output[0].name = copy.output[0]
    else:
        order = list(graph.node)
        rng.shuffle(order)
        copies = [onnx.NodeProto.FromString(other.SerializeToString()) for other in order]
        del graph.node[:]
        graph.node.extend(copies)


def _ends(graph: Any, node: Any, model: Any, rng: random.Random) -> None:
    """Type, shape or name of an input or an output."""
    values = rng.choice((graph.input, graph.output, graph.value_info))
    if not values:
        return
    value = rng.choice(values)
    kind = value.type.tensor_type
    how = rng.randrange(6)
    if how == 0:
        kind.elem_type = rng.choice((*range(17), 99))
    elif how == 1 and kind.shape.dim:
        dim = rng.choice(kind.shape.dim)
        dim.dim_value = rng.choice((*_LONGS, dim.dim_value + 1, dim.dim_value - 1, 1, 2, 3))
    elif how == 2 and kind.shape.dim:
        rng.choice(kind.shape.dim).dim_param = "N"
    elif how == 3:
        kind.shape.dim.add().dim_value = rng.choice((1, 2, 0, -1))
    elif how == 4:
        value.name = rng.choice((*_NAMES, *_names_of(graph)))
    else:
        kind.ClearField("shape")


def _rest(graph: Any, node: Any, model: Any, rng: random.Random) -> None:
    how = rng.randrange(4)
    if how == 0 and model.opset_import:
        model.opset_import[0].version = rng.choice((*range(8, 26), 0, -1, 2**40))
    elif how == 1:
        del model.opset_import[:]
    elif how == 2:
        node.name = rng.choice(_NAMES)
    else:
        model.ir_version = rng.choice((0, 1, 3, 8, 100))


_DAMAGES: tuple[Callable[[Any, Any, Any, random.Random], None], ...] = (
    *(_attribute, _attribute, _attribute, _other_attribute, _other_attribute, _operator),
    *(_operands, _operands, _constant, _constant, _constant, _constant),
    *(_constants, _nodes, _ends, _ends, _rest),
)
