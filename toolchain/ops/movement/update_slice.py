"""A tensor with a part of it replaced, as caches of keys and values are. TFLite
DYNAMIC_UPDATE_SLICE.

The part begins where a computed index for each axis says, moved so that it fits
(`dynamic_update_slice.cc`).
"""

from __future__ import annotations

import math

import numpy as np

from toolchain.ops import kit

_INDICES = (kit.DType.INT32, kit.DType.INT64)


def _infer(op: kit.AnyOperator) -> kit.TensorTypes:
    data, update, starts = (op.input(index) for index in range(3))
    if starts.dtype not in _INDICES or starts.shape != (len(data.shape),):
        raise ValueError(f"starts are an int32 or int64 for each axis, not {starts}")
    fits = len(update.shape) == len(data.shape) > 0 and all(
        1 <= part <= size for part, size in zip(update.shape, data.shape, strict=True)
    )
    if not fits or update.dtype is not data.dtype:
        raise ValueError(f"{update} does not fit into {data}")
    return (kit.TensorType(data.shape, data.dtype),)


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    data, update, starts = inputs
    room = np.array(data.shape) - np.array(update.shape)
    first = np.clip(starts.astype(np.int64), 0, room)
    result = np.array(data)
    result[tuple(slice(f, f + n) for f, n in zip(first, update.shape, strict=True))] = update
    return (result,)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    data, update, starts = (op.input(index) for index in range(3))
    params = kit.Struct(
        "thimble_update_slice_params",
        {
            "axes": len(data.shape),
            "element_bytes": data.dtype.size_bytes,
            "index_bytes": starts.dtype.size_bytes,
            "sizes": kit.numbers(data.shape),
            "update_sizes": kit.numbers(update.shape),
        },
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "data": kit.Input(0),
        "update": kit.Input(1),
        "starts": kit.Input(2),
        "target": kit.Output(0),
    }
    call = kit.Call("thimble_update_slice", arguments)
    runs = math.prod(update.shape[:-1])
    return kit.Kernel(
        (call,),
        _extents,
        find_overlaps=lambda: (kit.SafeOverlap(0, exact=True),),
        find_terms=lambda: {
            "call": 1.0,
            "word": data.size_bytes // 4,
            "run": runs,
            "axis of a run": runs * (len(data.shape) - 1),
            "run word": runs * (update.size_bytes // runs // 4),
            "run byte": runs * (update.size_bytes // runs % 4),
        },
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    size = math.prod(call.row("params.sizes")) * call["params.element_bytes"]
    part = math.prod(call.row("params.update_sizes")) * call["params.element_bytes"]
    starts = kit.whole(call["params.axes"], call["params.index_bytes"])
    return kit.Extents({0: kit.whole(size), 1: kit.whole(part), 2: starts}, {0: kit.whole(size)})


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    return kit.ReadOp(kit.Attributes(), (0, 1, 2))


def _write(op: kit.AnyOperator) -> kit.WrittenOp:
    wide = op.input(2).dtype is kit.DType.INT64
    return kit.WrittenOp(
        "DYNAMIC_UPDATE_SLICE", "DynamicUpdateSliceOptions", version=2 if wide else 1
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank, 300)
    part = tuple(int(rng.integers(1, size + 1)) for size in shape)
    of_type = kit.sample_type(rng)
    starts = rng.integers(-2, np.array(shape) + 3).astype(np.int32)
    constant = starts if rng.random() < 0.7 else None
    x, update = kit.Tensor("x", shape, *of_type), kit.Tensor("update", part, *of_type)
    where = kit.Tensor("starts", (rank,), kit.DType.INT32, None, constant)
    return kit.sample("update_slice", kit.Attributes(), x, update, where, name="update")


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="update_slice",
    attributes=kit.Attributes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("DYNAMIC_UPDATE_SLICE",), _read, _write),
    types=frozenset(kit.DType),
    limits="any type; int32 or int64 starts, constant or computed",
)
