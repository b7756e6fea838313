"""The k largest elements of each row, largest first, and their indices. TFLite TOPK_V2, int8.

Of equal elements the first comes first, as in LiteRT's `TopContainer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.elementwise.common import sample_shape
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import (
    Call,
    Input,
    Kernel,
    Output,
    Touched,
)
from toolchain.ops.movement.copies import (
    int32_constant,
    integers,
    sample_quantisation,
)
from toolchain.ops.spec import (
    ALIKE,
    Array,
    OpSpec,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


@dataclass(frozen=True)
class TopK(Attributes):
    """`k` elements of each row."""

    k: int


def _k(op: Op) -> int:
    assert isinstance(op.attributes, TopK)
    return op.attributes.k


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, k = graph.input(op, 0), _k(op)
    if not x.shape or not 0 < k <= x.shape[-1]:
        raise ValueError(f"the {k} largest of {x}")
    shape = (*x.shape[:-1], k)
    return (TensorType(shape, x.dtype), TensorType(shape, DType.INT32))


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    order = np.argsort(-inputs[0].astype(np.int64), axis=-1, kind="stable")[..., : _k(op)]
    return (np.take_along_axis(inputs[0], order, axis=-1), order.astype(np.int32))


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x = graph.input(op, 0)
    columns = x.shape[-1]
    call = Call(
        "thimble_top_k_s8",
        {
            "input": Input(0),
            "rows": x.elements // columns,
            "columns": columns,
            "k": _k(op),
            "values": Output(0),
            "indices": Output(1),
        },
    )
    return Kernel((call,), _extents)


def _extents(touched: Touched) -> Extents:
    rows = touched.call["rows"]
    found = rows * touched.call["k"]
    return Extents(
        {0: whole(rows * touched.call["columns"])}, {0: whole(found), 1: whole(found, 4)}
    )


def _read(node: TfliteNode) -> ReadOp:
    (k,) = integers(node, 1)
    return ReadOp(TopK(k), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    k = int32_constant("k", np.array([_k(op)]))
    return WrittenOp("TOPK_V2", "TopKV2Options", {}, (k,), version=2)


def _sample(rng: np.random.Generator) -> Graph:
    shape = (*sample_shape(rng, 3, 6)[1:], int(rng.integers(1, 60)))
    k = int(rng.integers(1, shape[-1] + 1))
    q = sample_quantisation(rng)
    tensors = [
        Tensor("x", shape, DType.INT8, q),
        Tensor("values", (*shape[:-1], k), DType.INT8, q),
        Tensor("indices", (*shape[:-1], k), DType.INT32),
    ]
    op = Op("top_k", "top_k", ("x",), ("values", "indices"), TopK(k))
    return Graph.build("sample", tensors, [op], ["x"], ["values", "indices"])


SPEC = OpSpec(
    quantised=ALIKE,
    kind="top_k",
    attributes=TopK,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("TOPK_V2",), _read, _write),
    dtypes=frozenset({DType.INT8, DType.INT32}),
    limits="int8, last dimension, constant k",
)
