"""The k largest elements of each row, largest first, and their indices. TFLite TOPK_V2, ONNX TopK.

The first of equal elements comes first, as in LiteRT's `TopContainer`. ONNX may ask for the
smallest ones, and its indices are int64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import sample_quantisation, sample_shape
from toolchain.ops.readers.onnx import resolve_axes

_TYPES = (
    kit.DType.INT8,
    kit.DType.FLOAT32,
    kit.DType.INT16,
    kit.DType.INT32,
    kit.DType.INT64,
)


@dataclass(frozen=True)
class TopK(kit.Attributes):
    """`k` elements of each row. With `smallest` the least ones, least first."""

    k: int
    smallest: bool = False
    indices: kit.DType = kit.DType.INT32


def _infer(op: kit.Operator[TopK]) -> kit.TensorTypes:
    x, attributes = op.x, op.attributes
    if x.dtype not in _TYPES:
        raise ValueError(f"the largest of {x}")
    if not x.shape or not 0 < attributes.k <= x.shape[-1]:
        raise ValueError(f"the {attributes.k} largest of {x}")
    if attributes.indices not in (kit.DType.INT32, kit.DType.INT64):
        raise ValueError(f"indices are int32 or int64, not {attributes.indices.value}")
    shape = (*x.shape[:-1], attributes.k)
    return (kit.TensorType(shape, x.dtype), kit.TensorType(shape, attributes.indices))


def _reference(op: kit.Operator[TopK], inputs: kit.Inputs) -> kit.Arrays:
    (x,), attributes = inputs, op.attributes
    wide = x if x.dtype.kind == "f" else x.astype(np.int64)
    falling = np.negative if x.dtype.kind == "f" else np.invert
    keys = wide if attributes.smallest else falling(wide)
    order = np.argsort(keys, axis=-1, kind="stable")[..., : attributes.k]
    values = np.take_along_axis(x, order, axis=-1)
    return (values, order.astype(attributes.indices.numpy))


def _select(op: kit.Operator[TopK], core: kit.Core) -> kit.Kernel:
    x, attributes = op.x, op.attributes
    params = kit.Struct(
        "thimble_top_k_params",
        {
            "rows": x.elements // x.shape[-1],
            "columns": x.shape[-1],
            "k": attributes.k,
            "smallest": int(attributes.smallest),
            "index_bytes": attributes.indices.size_bytes,
        },
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "input": kit.Input(0),
        "values": kit.Output(0),
        "indices": kit.Output(1, element="void"),
    }
    picks = x.elements // x.shape[-1] * attributes.k
    return kit.Kernel(
        (kit.Call(f"thimble_top_k_{kit.SUFFIXES[x.dtype]}", arguments),),
        _extents,
        find_terms=lambda: {"call": 1.0, "pick": picks, "look": picks * x.shape[-1]},
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call, source = touched.call, touched.inputs[0]
    assert source is not None
    rows, width = call["params.rows"], source.element_bytes
    kept = rows * call["params.k"]
    return kit.Extents(
        {0: kit.whole(rows * call["params.columns"], width)},
        {0: kit.whole(kept, width), 1: kit.whole(kept, call["params.index_bytes"])},
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    (k,) = node.integers(1)
    return kit.ReadOp(TopK(k), (0,))


def _write(op: kit.Operator[TopK]) -> kit.WrittenOp:
    k = kit.int32_constant("k", np.array([op.attributes.k]))
    return kit.WrittenOp("TOPK_V2", "TopKV2Options", {}, (k,), version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = (*sample_shape(rng, 3, 6)[1:], int(rng.integers(1, 60)))
    k = int(rng.integers(1, shape[-1] + 1))
    dtype = _TYPES[int(rng.choice([0, 0, 1, 2, 3, 4]))]
    q = sample_quantisation(rng, dtype) if dtype in (kit.DType.INT8, kit.DType.INT16) else None
    x = kit.Tensor("x", shape, dtype, q)
    return kit.sample("top_k", TopK(k), x, outputs=("values", "indices"))


def _read_onnx(node: kit.OnnxNode) -> None:
    """Values and indices, in order, along any axis."""
    if not node.attribute("sorted", 1):
        raise node.unsupported("the order of its results is open", "export it with sorted=1")
    order, rank = node.axes(0), len(node.shape(0))
    (axis,) = resolve_axes(node, (int(node.attribute("axis", -1)),), rank)
    (k,) = node.integers(1)
    axes = (*(other for other in order if other != axis), axis)
    smallest = not node.attribute("largest", 1)
    q = None if node.plain else node.quantisation(0)
    dtype = node.plain_dtype(0) if node.plain else kit.DType.INT8
    attributes, given = TopK(k, smallest, kit.DType.INT64), [node.operand(0, axes)]
    node.emit("top_k", attributes, given, q, axes, dtype=dtype, indices=kit.DType.INT64)


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="top_k",
    attributes=TopK,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("TOPK_V2",), _read, _write),
    onnx=kit.OnnxBinding(("TopK",), _read_onnx, plain=_read_onnx),
    types=frozenset(_TYPES),
    limits="float32 or integers of 8, 16, 32 or 64 bits, constant k; TFLite: the last dimension",
)
