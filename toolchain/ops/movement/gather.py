"""Gather: slices of a tensor along an axis, chosen by integer indices, as in an embedding lookup.

TFLite GATHER and EMBEDDING_LOOKUP. Any element type. If an index lies outside the tensor, the
model's run fails; LiteRT refuses it at run time, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit

_INDICES = (kit.DType.INT32, kit.DType.INT64)


@dataclass(frozen=True)
class Gather(kit.Attributes):
    """`batch_dims`: how many leading dimensions data and indices share."""

    axis: int = 0
    batch_dims: int = 0


@dataclass(frozen=True)
class _Shape:
    """Data as [batches][outer][count][inner], indices as [batches][picks]."""

    axis: int
    batch_dims: int
    batches: int
    outer: int
    count: int
    inner: int
    picks: int


def _shape(op: kit.Operator[Gather]) -> _Shape:
    """Raises ValueError where data, indices and attributes contradict each other."""
    data, indices = op.x, op.input(1)
    axis = kit.resolve_axis(op.attributes.axis, len(data.shape))
    batch = op.attributes.batch_dims
    batch = batch + len(indices.shape) if batch < 0 else batch
    if not 0 <= batch <= min(axis, len(indices.shape)):
        raise ValueError(f"{batch} batch dimensions for axis {axis} of {data}")
    if data.shape[:batch] != indices.shape[:batch]:
        raise ValueError(f"{data} and {indices} differ in their batch dimensions")
    return _Shape(
        axis,
        batch,
        math.prod(data.shape[:batch]),
        math.prod(data.shape[batch:axis]),
        data.shape[axis],
        math.prod(data.shape[axis + 1 :]),
        math.prod(indices.shape[batch:]),
    )


def _infer(op: kit.Operator[Gather]) -> kit.TensorTypes:
    data, indices, shape = op.x, op.input(1), _shape(op)
    if indices.dtype not in _INDICES:
        raise ValueError(f"indices are int32 or int64, not {indices.dtype.value}")
    known = indices.constant
    if known is not None and known.size and not (0 <= known.min() <= known.max() < shape.count):
        raise ValueError(f"indices from {known.min()} to {known.max()} of {shape.count}")
    ahead, behind = data.shape[: shape.axis], data.shape[shape.axis + 1 :]
    return (kit.TensorType((*ahead, *indices.shape[shape.batch_dims :], *behind), data.dtype),)


def _reference(op: kit.Operator[Gather], inputs: kit.Inputs) -> kit.Arrays:
    shape, y = _shape(op), op.y
    data = inputs[0].reshape(shape.batches, shape.outer, shape.count, shape.inner)
    indices = inputs[1].astype(np.int64).reshape(shape.batches, shape.picks)
    taken = [np.take(d, i, axis=1) for d, i in zip(data, indices, strict=True)]
    return (np.stack(taken).reshape(y.shape),)


def _select(op: kit.Operator[Gather], core: kit.Core) -> kit.Kernel:
    shape = _shape(op)
    run = shape.inner * op.x.dtype.size_bytes
    params = kit.Struct(
        "thimble_gather_params",
        {
            "batches": shape.batches,
            "outer": shape.outer,
            "count": shape.count,
            "run_bytes": run,
            "picks": shape.picks,
            "index_bytes": op.input(1).dtype.size_bytes,
        },
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "data": kit.Input(0),
        "indices": kit.Input(1),
        "target": kit.Output(0),
    }
    runs = shape.batches * shape.outer * shape.picks
    return kit.Kernel(
        (kit.Call("thimble_gather", arguments, status=True),),
        _extents,
        find_terms=lambda: {
            "call": 1.0,
            "outer": shape.batches * shape.outer,
            "run": runs,
            "run word": runs * (run // 4),
            "run byte": runs * (run % 4),
        },
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    """`thimble_gather` checks every index against `count`."""
    batches, outer, count, run_bytes, picks, index_bytes = touched.call.params(
        "batches", "outer", "count", "run_bytes", "picks", "index_bytes"
    )
    return kit.Extents(
        {
            0: kit.whole(batches * outer * count, run_bytes),
            1: kit.whole(batches * picks, index_bytes),
        },
        {0: kit.whole(batches * outer * picks, run_bytes)},
    )


def _axes(op: kit.Operator[Gather]) -> tuple[kit.Axis, ...]:
    """Every axis; the gathered one takes the data whole."""
    shape, data, indices = _shape(op), op.x, op.input(1)
    new = len(indices.shape) - shape.batch_dims
    result = []
    for axis in range(len(op.y.shape)):
        of_data = of_indices = None
        if axis < shape.axis:
            of_data = kit.Reach(axis)
            of_indices = kit.Reach(axis) if axis < shape.batch_dims else None
        elif axis < shape.axis + new:
            of_indices = kit.Reach(axis - shape.axis + shape.batch_dims)
        else:
            of_data = kit.Reach(axis - new + 1)
        result.append(kit.Axis(axis, (of_data, of_indices)))
    return tuple(result) if data.shape else ()


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    order = (1, 0) if node.builtin == "EMBEDDING_LOOKUP" else (0, 1)
    data, indices, y = node.inputs[order[0]], node.inputs[order[1]], node.outputs[0]
    if data is None or indices is None or indices.dtype not in _INDICES:
        raise node.unsupported("its indices are not int32 or int64")
    if data.dtype is not y.dtype:
        raise node.unsupported(
            f"it turns {data.dtype.value} into {y.dtype.value}", "quantise the activations, too"
        )
    if node.builtin == "EMBEDDING_LOOKUP" or not node.has_options:
        return kit.ReadOp(Gather(), order)
    return kit.ReadOp(Gather(int(node.options.axis), int(node.options.batchDims)), order)


def _write(op: kit.Operator[Gather]) -> kit.WrittenOp:
    options = {"axis": op.attributes.axis, "batchDims": op.attributes.batch_dims}
    return kit.WrittenOp("GATHER", "GatherOptions", options, version=5)


def _sample(rng: np.random.Generator) -> kit.Graph:
    """The indices are constant: random ones as an input would mostly lie outside."""
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank, 400)
    axis = int(rng.integers(rank))
    batch = int(rng.integers(axis + 1)) if rng.random() < 0.3 else 0
    tail = kit.sample_shape(rng, int(rng.integers(0, 3)), 12)
    dtype, quantisation = kit.sample_type(rng)
    index_type = kit.DType.INT64 if rng.random() < 0.3 else kit.DType.INT32
    picks = (*shape[:batch], *tail)
    data = rng.integers(0, shape[axis], picks).astype(index_type.numpy)
    attributes = Gather(axis - rank if rng.random() < 0.3 else axis, batch)
    x = kit.Tensor("x", shape, dtype, quantisation)
    return kit.sample("gather", attributes, x, kit.constant_sample("indices", data))


def _choices(op: kit.Operator[Gather]) -> int:
    """The bound that every index of a gather must be below."""
    if op.kind == "gather":
        return _shape(op).count
    return min(op.x.shape[: op.input(1).shape[-1]])


def index_limits(graph: kit.Graph) -> Mapping[str, int]:
    """For each input of the graph that serves as indices: the number of slices to choose from.

    Inputs that reach a gather through operators on integers are included, and float inputs that a
    cast makes such integers, as Keras does with the words of a text.
    """
    limits: dict[str, int] = {}
    origins = {name: {name} for name in graph.inputs if graph.tensors[name].dtype in _DRAWN}
    for op in graph.ops:
        if op.kind in ("gather", "gather_nd") and op.inputs[1] in origins:
            for name in origins[op.inputs[1]]:
                count = _choices(kit.operator_of(op, graph))
                limits[name] = min(count, limits.get(name, count))
        elif op.kind in _CARRYING or all(
            graph.tensors[name].dtype in _INDICES for name in (*op.inputs, *op.outputs) if name
        ):
            read = {origin for name in op.inputs for origin in origins.get(name, ())}
            if read:
                origins.update(dict.fromkeys(op.outputs, read))
    return limits


_DRAWN = (*_INDICES, kit.DType.FLOAT32)
_CARRYING = ("cast", "reshape", "select")
"""Kinds that pass indices on whatever their type; `select` has a condition beside them."""


def as_indices(values: kit.Array, limit: int) -> kit.Array:
    """Random values of an input as random indices below `limit`, in their type."""
    if values.dtype.kind == "f":
        return np.asarray(np.floor(np.abs(values) * limit) % limit, values.dtype)
    return values % limit


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="gather",
    attributes=Gather,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=_axes,
    tflite=kit.TfliteBinding(("GATHER", "EMBEDDING_LOOKUP"), _read, _write),
    types=frozenset(kit.DType),
    limits="any type, int32 or int64 indices, batch dimensions; the data may be constant",
)
