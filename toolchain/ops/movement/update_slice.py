"""A tensor with a part of it replaced, as caches of keys and values are. TFLite
DYNAMIC_UPDATE_SLICE.

The part begins where a computed index for each axis says, moved so that it fits
(`dynamic_update_slice.cc`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Struct,
    Touched,
    numbers,
)
from toolchain.ops.movement.copies import sample_shape, sample_type
from toolchain.ops.spec import (
    ALIKE,
    Array,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_INDICES = (DType.INT32, DType.INT64)


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    data, update, starts = (graph.input(op, index) for index in range(3))
    if starts.dtype not in _INDICES or starts.shape != (len(data.shape),):
        raise ValueError(f"starts are an int32 or int64 for each axis, not {starts}")
    fits = len(update.shape) == len(data.shape) > 0 and all(
        1 <= part <= size for part, size in zip(update.shape, data.shape, strict=True)
    )
    if not fits or update.dtype is not data.dtype:
        raise ValueError(f"{update} does not fit into {data}")
    return (TensorType(data.shape, data.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    data, update, starts = inputs
    room = np.array(data.shape) - np.array(update.shape)
    first = np.clip(starts.astype(np.int64), 0, room)
    result = np.array(data)
    result[tuple(slice(f, f + n) for f, n in zip(first, update.shape, strict=True))] = update
    return (result,)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    data, update, starts = (graph.input(op, index) for index in range(3))
    params = Struct(
        "thimble_update_slice_params",
        {
            "axes": len(data.shape),
            "element_bytes": data.dtype.size_bytes,
            "index_bytes": starts.dtype.size_bytes,
            "sizes": numbers(data.shape),
            "update_sizes": numbers(update.shape),
        },
    )
    arguments: dict[str, Argument] = {
        "params": params,
        "data": Input(0),
        "update": Input(1),
        "starts": Input(2),
        "target": Output(0),
    }
    call = Call("thimble_update_slice", arguments)
    return Kernel((call,), _extents, find_overlaps=lambda: (SafeOverlap(0, exact=True),))


def _extents(touched: Touched) -> Extents:
    call = touched.call
    size = math.prod(call.row("params.sizes")) * call["params.element_bytes"]
    part = math.prod(call.row("params.update_sizes")) * call["params.element_bytes"]
    starts = whole(call["params.axes"], call["params.index_bytes"])
    return Extents({0: whole(size), 1: whole(part), 2: starts}, {0: whole(size)})


def _read(node: TfliteNode) -> ReadOp:
    return ReadOp(Attributes(), (0, 1, 2))


def _write(op: Op, graph: Graph) -> WrittenOp:
    wide = graph.input(op, 2).dtype is DType.INT64
    return WrittenOp("DYNAMIC_UPDATE_SLICE", "DynamicUpdateSliceOptions", version=2 if wide else 1)


def _sample(rng: np.random.Generator) -> Graph:
    rank = int(rng.integers(1, 5))
    shape = sample_shape(rng, rank, 300)
    part = tuple(int(rng.integers(1, size + 1)) for size in shape)
    dtype, quantisation = sample_type(rng)
    starts = rng.integers(-2, np.array(shape) + 3).astype(np.int32)
    constant = starts if rng.random() < 0.7 else None
    tensors = [
        Tensor("x", shape, dtype, quantisation),
        Tensor("update", part, dtype, quantisation),
        Tensor("starts", (rank,), DType.INT32, None, constant),
        Tensor("y", shape, dtype, quantisation),
    ]
    op = Op("update_slice", "update", ("x", "update", "starts"), ("y",))
    inputs = [tensor.name for tensor in tensors[:3] if not tensor.is_constant]
    return Graph.build("sample", tensors, [op], inputs, ["y"])


SPEC = OldForm(
    quantised=ALIKE,
    kind="update_slice",
    attributes=Attributes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("DYNAMIC_UPDATE_SLICE",), _read, _write),
    types=frozenset(DType),
    limits="any type; int32 or int64 starts, constant or computed",
)
