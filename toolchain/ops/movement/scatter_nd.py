"""Slices added to zeros where rows of coordinates say. TFLite SCATTER_ND.

Bytes keep the last 8 bits of a sum of stored values, whatever their scale, as in LiteRT.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Argument, Call, Input, Kernel, Output, Touched
from toolchain.ops.movement.copies import (
    int32_constant,
    integers,
    sample_quantisation,
    sample_shape,
)
from toolchain.ops.movement.gather_nd import rows_struct
from toolchain.ops.spec import (
    STORED,
    Array,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_SUFFIXES = MappingProxyType(
    {
        DType.FLOAT32: "f32",
        DType.INT32: "s32",
        DType.INT64: "s64",
        DType.INT8: "s8",
        DType.UINT8: "s8",
        DType.BOOL: "bool",
    }
)
_INDICES = (DType.INT32, DType.INT64)


@dataclass(frozen=True)
class ScatterNd(Attributes):
    """`shape` of the output. `zero` is what stands for 0: a stored byte where uint8 was lowered."""

    shape: tuple[int, ...]
    zero: int = 0


def _attributes(op: Op) -> ScatterNd:
    assert isinstance(op.attributes, ScatterNd)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    indices, updates, shape = graph.input(op, 0), graph.input(op, 1), _attributes(op).shape
    if indices.dtype not in _INDICES or not indices.shape:
        raise ValueError(f"coordinates are rows of int32 or int64, not {indices}")
    depth = indices.shape[-1]
    if not 1 <= depth <= len(shape) or min(shape, default=1) < 1:
        raise ValueError(f"rows of {depth} coordinates into {list(shape)}")
    if updates.shape != (*indices.shape[:-1], *shape[depth:]):
        raise ValueError(f"updates {updates} do not fit {indices} and {list(shape)}")
    if indices.constant is not None:
        known = indices.constant.astype(np.int64)
        if not ((known >= 0) & (known < np.array(shape[:depth]))).all():
            raise ValueError(f"coordinates outside of {list(shape[:depth])}")
    return (TensorType(shape, updates.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    attributes, updates = _attributes(op), inputs[1]
    result = np.full(attributes.shape, attributes.zero, updates.dtype)
    with np.errstate(all="ignore"):
        summands = np.subtract(updates, attributes.zero) if attributes.zero else updates
        np.add.at(result, tuple(np.moveaxis(inputs[0].astype(np.int64), -1, 0)), summands)
    return (result,)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    indices, y = graph.input(op, 0), graph.output(op)
    suffix = _SUFFIXES[y.dtype]
    arguments: dict[str, Argument] = {
        "params": rows_struct(y, indices, indices.shape[-1]),
        "size": y.elements,
        **({"zero": _attributes(op).zero} if suffix == "s8" else {}),
        "indices": Input(0),
        "updates": Input(1, element="int8_t" if y.dtype is DType.UINT8 else ""),
        "target": Output(0, element="int8_t" if y.dtype is DType.UINT8 else ""),
    }
    call = Call(f"thimble_scatter_nd_{suffix}", arguments, status=True)
    return Kernel((call,), partial(_extents, y.dtype.size_bytes))


def _extents(element_bytes: int, touched: Touched) -> Extents:
    """Every coordinate is checked against `sizes`."""
    rows, depth, run_bytes, index_bytes = (
        touched.call[f"params.{name}"] for name in ("rows", "depth", "run_bytes", "index_bytes")
    )
    return Extents(
        {0: whole(rows * depth, index_bytes), 1: whole(rows, run_bytes)},
        {0: whole(touched.call["size"], element_bytes)},
        largest=math.prod(touched.call.row("params.sizes")),
    )


def _read(node: TfliteNode) -> ReadOp:
    return ReadOp(ScatterNd(integers(node, 2), -128 if node.legacy else 0), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    shape = int32_constant("shape", _attributes(op).shape)
    return WrittenOp("SCATTER_ND", "ScatterNdOptions", {}, (shape,))


def _sample(rng: np.random.Generator) -> Graph:
    """Some rows name one slice twice. The coordinates are constant, because random ones would
    mostly lie outside; TFLite has int32 ones.
    """
    rank = int(rng.integers(1, 5))
    shape = sample_shape(rng, rank, 300)
    depth = int(rng.integers(1, rank + 1))
    rows = sample_shape(rng, int(rng.integers(1, 3)), 12)
    dtype = list(_SUFFIXES)[int(rng.integers(len(_SUFFIXES)))]
    quantisation = sample_quantisation(rng) if dtype is DType.INT8 else None
    picked = rng.integers(0, shape[:depth], (*rows, depth)).astype(np.int32)
    tensors = [
        Tensor("indices", picked.shape, DType.INT32, None, picked),
        Tensor("updates", (*rows, *shape[depth:]), dtype, quantisation),
        Tensor("y", shape, dtype, quantisation),
    ]
    op = Op("scatter_nd", "scatter", ("indices", "updates"), ("y",), ScatterNd(shape))
    return Graph.build("sample", tensors, [op], ["updates"], ["y"])


SPEC = OldForm(
    quantised=STORED,
    kind="scatter_nd",
    attributes=ScatterNd,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("SCATTER_ND",), _read, _write),
    types=frozenset({*_SUFFIXES, *_INDICES}),
    limits="float32, bool or integers of 8, 32 or 64 bits; int32 or int64 coordinates; "
    "the shape is constant",
)
