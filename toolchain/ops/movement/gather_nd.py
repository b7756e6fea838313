"""Gather by coordinates: slices of a tensor, each picked by the first coordinates of its place.

TFLite GATHER_ND. Any element type. The coordinates are constant, so the toolchain turns each row of
them into one index: of data [4, 5, 3], row (2, 1) is slice 2 * 5 + 1 = 11 of data [20, 3]. Then
`thimble_gather` takes the slices, as it does for GATHER.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit

_INDICES = (kit.DType.INT32, kit.DType.INT64)


def _depth(op: kit.AnyOperator) -> int:
    """How many leading axes of the data a row of coordinates has. Raises ValueError if too many."""
    data, indices = op.x, op.input(1)
    if indices.dtype not in _INDICES or not indices.shape:
        raise ValueError(f"coordinates are rows of int32 or int64, not {indices}")
    if not 1 <= indices.shape[-1] <= len(data.shape):
        raise ValueError(f"rows of {indices.shape[-1]} coordinates into {data}")
    return indices.shape[-1]


def _infer(op: kit.AnyOperator) -> kit.TensorTypes:
    data, indices, depth = op.x, op.input(1), _depth(op)
    if indices.constant is not None:
        known = indices.constant.astype(np.int64)
        if not ((known >= 0) & (known < np.array(data.shape[:depth]))).all():
            raise ValueError(f"coordinates outside of {list(data.shape[:depth])}")
    return (kit.TensorType((*indices.shape[:-1], *data.shape[depth:]), data.dtype),)


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    rows = np.moveaxis(inputs[1].astype(np.int64), -1, 0)
    return (inputs[0][tuple(rows)].reshape(op.y.shape),)


def _positions(coordinates: kit.Array, sizes: Sequence[int]) -> NDArray[np.int32]:
    """Each row of coordinates as one index into the first axes, row-major."""
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    positions: NDArray[np.int32] = (coordinates.astype(np.int64) @ strides).astype(np.int32)
    return positions


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    data, indices, depth = op.x, op.input(1), _depth(op)
    coordinates, sizes = indices.constant, data.shape[:depth]
    if coordinates is None:
        params = rows_struct(data, indices, depth)
        given: dict[str, kit.Argument] = {
            "params": params,
            "data": kit.Input(0),
            "indices": kit.Input(1),
            "target": kit.Output(0),
        }
        return kit.Kernel((kit.Call("thimble_gather_nd", given, status=True),), _computed_extents)
    params = kit.Struct(
        "thimble_gather_params",
        {
            "batches": 1,
            "outer": 1,
            "count": math.prod(sizes),
            "run_bytes": math.prod(data.shape[depth:]) * data.dtype.size_bytes,
            "picks": math.prod(indices.shape[:-1]),
            "index_bytes": kit.DType.INT32.size_bytes,
        },
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "data": kit.Input(0),
        "indices": kit.Packed("slices"),
        "target": kit.Output(0),
    }
    slices = kit.Constant("slices", lambda: _positions(coordinates, sizes), "index of each slice")
    call = kit.Call("thimble_gather", arguments, status=True)
    return kit.Kernel((call,), _extents, constants=(slices,))


def rows_struct(data: kit.Tensor, indices: kit.Tensor, depth: int) -> kit.Struct:
    """Rows of coordinates into the first `depth` axes of the data."""
    return kit.Struct(
        "thimble_rows_params",
        {
            "rows": math.prod(indices.shape[:-1]),
            "depth": depth,
            "run_bytes": math.prod(data.shape[depth:]) * data.dtype.size_bytes,
            "index_bytes": indices.dtype.size_bytes,
            "sizes": kit.numbers(data.shape[:depth]),
        },
    )


def _computed_extents(touched: kit.Touched) -> kit.Extents:
    """`thimble_gather_nd` checks every coordinate against `sizes`."""
    rows, depth, run_bytes, index_bytes = touched.call.params(
        "rows", "depth", "run_bytes", "index_bytes"
    )
    places = math.prod(touched.call.row("params.sizes"))
    return kit.Extents(
        {0: kit.whole(places, run_bytes), 1: kit.whole(rows * depth, index_bytes)},
        {0: kit.whole(rows, run_bytes)},
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    """`thimble_gather` checks every index against `count`."""
    count, run_bytes, picks, index_bytes = touched.call.params(
        "count", "run_bytes", "picks", "index_bytes"
    )
    read, written = kit.whole(count, run_bytes), kit.whole(picks, run_bytes)
    return kit.Extents({0: read}, {0: written}, {"slices": picks * index_bytes})


def _axes(op: kit.AnyOperator) -> tuple[kit.Axis, ...]:
    """Every axis; those of the coordinates take the data whole."""
    depth, rows = _depth(op), len(op.input(1).shape) - 1
    return tuple(
        kit.Axis(
            axis, (None, kit.Reach(axis)) if axis < rows else (kit.Reach(axis - rows + depth), None)
        )
        for axis in range(len(op.y.shape))
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    return kit.ReadOp(kit.Attributes(), (0, 1))


def _write(op: kit.AnyOperator) -> kit.WrittenOp:
    return kit.WrittenOp("GATHER_ND", "GatherNdOptions", {}, version=4)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank, 400)
    depth = int(rng.integers(1, rank + 1))
    rows = kit.sample_shape(rng, int(rng.integers(0, 3)), 12)
    dtype, quantisation = kit.sample_type(rng)
    index_type = kit.DType.INT64 if rng.random() < 0.3 else kit.DType.INT32
    picked = rng.integers(0, shape[:depth], (*rows, depth)).astype(index_type.numpy)
    x = kit.Tensor("x", shape, dtype, quantisation)
    indices = kit.constant_sample("indices", picked)
    return kit.sample("gather_nd", kit.Attributes(), x, indices)


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="gather_nd",
    attributes=kit.Attributes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=_axes,
    tflite=kit.TfliteBinding(("GATHER_ND",), _read, _write),
    types=frozenset(kit.DType),
    limits="any type; int32 or int64 coordinates; the data may be constant",
)
