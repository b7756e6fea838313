"""Comparisons of two tensors, broadcasting, to bool. TFLite EQUAL, LESS and the others.

Arithmetic of int8: `ComparisonWithScaling`: each operand, times 256, is scaled by its own scale,
which must be below 1. float32, wider integers and bool are compared as they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import (
    Int64,
    check_per_tensor,
    infer_broadcast,
    sample_broadcast_shapes,
    sample_operands,
    sample_quantisation,
    scaled_operands,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel
from toolchain.ops.readers.onnx_elementwise import emit_stored

_LEFT_SHIFT = 8


class Relation(Enum):
    """The value says which results are true: 1 for less, 2 for equal, 4 for greater, added up."""

    LESS = 1
    EQUAL = 2
    LESS_EQUAL = 3
    GREATER = 4
    NOT_EQUAL = 5
    GREATER_EQUAL = 6


RELATIONS = MappingProxyType(
    {relation: getattr(np, relation.name.lower()) for relation in Relation}
)
_ONNX = MappingProxyType(
    {
        "Equal": Relation.EQUAL,
        "Greater": Relation.GREATER,
        "GreaterOrEqual": Relation.GREATER_EQUAL,
        "Less": Relation.LESS,
        "LessOrEqual": Relation.LESS_EQUAL,
    }
)


@dataclass(frozen=True)
class Compare(kit.Attributes):
    """The relation that is tested."""

    relation: Relation


def _infer(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    (output,) = infer_broadcast(op)
    return (kit.TensorType(output.shape, kit.DType.BOOL),)


def _scaled(tensor: kit.Tensor, stored: Int64) -> Int64:
    raised = (stored - tensor.q.zero_point) << _LEFT_SHIFT
    return kit.multiply_by_quantized_multiplier(raised, *kit.quantize_multiplier(tensor.q.scale))


def _reference(op: kit.Operator[Compare], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    one, two = inputs
    if op.x.dtype is kit.DType.INT8:
        one, two = (_scaled(op.input(i), x.astype(np.int64)) for i, x in enumerate(inputs))
    return (np.asarray(RELATIONS[op.attributes.relation](one, two)),)


def _select(op: kit.Operator[Compare], core: kit.Core) -> kit.Kernel:
    struct, params = "thimble_relation_params", {"relation": op.attributes.relation.value}
    if op.x.dtype is kit.DType.INT8:
        struct, params = "thimble_compare_params", {**params, **_scalings(op)}
    function = f"thimble_compare_{kit.SUFFIXES[op.x.dtype]}"
    return broadcast_kernel(op, core, function, kit.Struct(struct, params))


def _scalings(op: kit.AnyOperator) -> Mapping[str, int]:
    """Raises UnsupportedError for scales from 1 on."""
    operands = (op.x, op.input(1))
    scalings = [kit.quantize_multiplier(tensor.q.scale) for tensor in operands]
    for tensor, (_, shift) in zip(operands, scalings, strict=True):
        if shift > 0:
            raise op.refused(
                f"{tensor.name!r} has the scale {tensor.q.scale:g}; from 1 on "
                "TFLite shifts right by a negative number, which C leaves undefined; requantise "
                "the model"
            )
    return scaled_operands(scalings, [tensor.q.zero_point for tensor in operands])


def _read_onnx(node: kit.OnnxNode) -> None:
    """Operands are float32, or plain integers and bools."""
    if not (node.in_float or node.plain):
        raise node.left_in_float("ONNX Runtime has no quantised form of it")
    emit_stored(node, "compare", Compare(_ONNX[node.operator]), 2, kit.DType.BOOL)


def _sample(rng: np.random.Generator) -> kit.Graph:
    """Often alike in scale, and then often equal."""
    shapes = sample_broadcast_shapes(rng, 4)
    first = sample_quantisation(rng, scale=float(2.0 ** rng.uniform(-9, -0.1)))
    second = sample_quantisation(rng, scale=float(2.0 ** rng.uniform(-9, -0.1)))
    q = [first, first if rng.random() < 0.4 else second]
    operands = sample_operands(rng, shapes, q)
    relation = list(Relation)[int(rng.integers(6))]
    return kit.sample("compare", Compare(relation), *operands)


_TESTED = MappingProxyType(
    {
        kit.DType.BOOL: (Relation.EQUAL, Relation.NOT_EQUAL),
        kit.DType.INT16: tuple(
            relation for relation in Relation if relation is not Relation.NOT_EQUAL
        ),
    }
)
"""The relations that TFLite tests of these types, where it does not test every one."""


def _form(dtype: kit.DType) -> kit.Form[Any]:
    """int8 is scaled, other types are compared as they are stored."""
    scaled, relations = dtype is kit.DType.INT8, _TESTED.get(dtype, tuple(Relation))

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        if dtype is kit.DType.INT16 and Relation[node.builtin] not in relations:
            raise node.unsupported(
                "LiteRT leaves its output unwritten", "use EQUAL and LOGICAL_NOT"
            )
        for tensor in node.inputs:
            if tensor is None or tensor.dtype is not dtype:
                raise node.unsupported(
                    f"an operand that is not {dtype.value}", "give both operands one type (tf.cast)"
                )
            if scaled:
                check_per_tensor(node, tensor)
        return kit.ReadOp(Compare(Relation[node.builtin]), (0, 1))

    def write(op: kit.Operator[Compare]) -> kit.WrittenOp:
        name = op.attributes.relation.name
        title = "".join(part.capitalize() for part in name.split("_"))
        return kit.WrittenOp(name, f"{title}Options", version=2 if scaled else 1)

    def stored_sample(rng: np.random.Generator) -> kit.Graph:
        """Few values, so that many are equal."""
        graph = _sample(rng)
        (op,) = graph.ops
        assert isinstance(op.attributes, Compare)
        if op.attributes.relation not in relations:
            relation = relations[int(rng.integers(len(relations)))]
            graph = replace(graph, ops=(replace(op, attributes=Compare(relation)),))
        return kit.with_tensors(graph, plain)

    def plain(tensor: kit.Tensor) -> kit.Tensor:
        data = tensor.constant
        if data is not None:
            data = (data % 2 if dtype is kit.DType.BOOL else data).astype(dtype.numpy)
        own = tensor.dtype if tensor.name == "y" else dtype
        return replace(tensor, dtype=own, quantisation=None, constant=data)

    return kit.Form(
        kind="compare",
        attributes=Compare,
        infer=_infer,
        reference=_reference,
        select=_select,
        sample=_sample if scaled else stored_sample,
        axes=kit.elementwise_axes,
        tflite=kit.TfliteBinding(tuple(r.name for r in Relation), read, write),
        onnx=kit.OnnxBinding(tuple(_ONNX), _read_onnx, plain=_read_onnx),
        dtype=dtype,
        types=frozenset({dtype, kit.DType.BOOL}),
        quantised=kit.SCALED if scaled else kit.STORED,
        limits=f"{dtype.value}{' of scales below 1' * scaled}, any broadcast; gives bool",
    )


_TYPES = (
    kit.DType.INT8,
    kit.DType.FLOAT32,
    kit.DType.INT16,
    kit.DType.INT32,
    kit.DType.INT64,
    kit.DType.BOOL,
)
SPEC = kit.OpSpec(tuple(map(_form, _TYPES)))
