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

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    Struct,
    Touched,
    numbers,
)
from toolchain.ops.movement.copies import sample_shape, sample_type
from toolchain.ops.spec import (
    ALIKE,
    Array,
    Axis,
    Reach,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_INDICES = (DType.INT32, DType.INT64)


def _depth(op: Op, graph: Graph) -> int:
    """How many leading axes of the data a row of coordinates has. Raises ValueError if too many."""
    data, indices = graph.input(op, 0), graph.input(op, 1)
    if indices.dtype not in _INDICES or not indices.shape:
        raise ValueError(f"coordinates are rows of int32 or int64, not {indices}")
    if not 1 <= indices.shape[-1] <= len(data.shape):
        raise ValueError(f"rows of {indices.shape[-1]} coordinates into {data}")
    return indices.shape[-1]


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    data, indices, depth = graph.input(op, 0), graph.input(op, 1), _depth(op, graph)
    if indices.constant is not None:
        known = indices.constant.astype(np.int64)
        if not ((known >= 0) & (known < np.array(data.shape[:depth]))).all():
            raise ValueError(f"coordinates outside of {list(data.shape[:depth])}")
    return (TensorType((*indices.shape[:-1], *data.shape[depth:]), data.dtype),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    rows = np.moveaxis(inputs[1].astype(np.int64), -1, 0)
    return (inputs[0][tuple(rows)].reshape(graph.output(op).shape),)


def _positions(coordinates: Array, sizes: Sequence[int]) -> NDArray[np.int32]:
    """Each row of coordinates as one index into the first axes, row-major."""
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    found: NDArray[np.int32] = (coordinates.astype(np.int64) @ strides).astype(np.int32)
    return found


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    data, indices, depth = graph.input(op, 0), graph.input(op, 1), _depth(op, graph)
    coordinates, sizes = indices.constant, data.shape[:depth]
    if coordinates is None:
        params = rows_struct(data, indices, depth)
        given: dict[str, Argument] = {
            "params": params,
            "data": Input(0),
            "indices": Input(1),
            "target": Output(0),
        }
        return Kernel((Call("thimble_gather_nd", given, status=True),), _computed_extents)
    params = Struct(
        "thimble_gather_params",
        {
            "batches": 1,
            "outer": 1,
            "count": math.prod(sizes),
            "run_bytes": math.prod(data.shape[depth:]) * data.dtype.size_bytes,
            "picks": math.prod(indices.shape[:-1]),
            "index_bytes": DType.INT32.size_bytes,
        },
    )
    arguments: dict[str, Argument] = {
        "params": params,
        "data": Input(0),
        "indices": Packed("slices"),
        "target": Output(0),
    }
    slices = Constant("slices", lambda: _positions(coordinates, sizes), "index of each slice")
    call = Call("thimble_gather", arguments, status=True)
    return Kernel((call,), _extents, constants=(slices,))


def rows_struct(data: Tensor, indices: Tensor, depth: int) -> Struct:
    """Rows of coordinates into the first `depth` axes of the data."""
    return Struct(
        "thimble_rows_params",
        {
            "rows": math.prod(indices.shape[:-1]),
            "depth": depth,
            "run_bytes": math.prod(data.shape[depth:]) * data.dtype.size_bytes,
            "index_bytes": indices.dtype.size_bytes,
            "sizes": numbers(data.shape[:depth]),
        },
    )


def _computed_extents(touched: Touched) -> Extents:
    """`thimble_gather_nd` checks every coordinate against `sizes`."""
    rows, depth, run_bytes, index_bytes = (
        touched.call[f"params.{name}"] for name in ("rows", "depth", "run_bytes", "index_bytes")
    )
    places = math.prod(touched.call.row("params.sizes"))
    return Extents(
        {0: whole(places, run_bytes), 1: whole(rows * depth, index_bytes)},
        {0: whole(rows, run_bytes)},
    )


def _extents(touched: Touched) -> Extents:
    """`thimble_gather` checks every index against `count`."""
    count, run_bytes, picks, index_bytes = (
        touched.call[f"params.{name}"] for name in ("count", "run_bytes", "picks", "index_bytes")
    )
    read, written = whole(count, run_bytes), whole(picks, run_bytes)
    return Extents({0: read}, {0: written}, {"slices": picks * index_bytes})


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Every axis; those of the coordinates take the data whole."""
    depth, rows = _depth(op, graph), len(graph.input(op, 1).shape) - 1
    return tuple(
        Axis(
            axis,
            (None, Reach(axis)) if axis < rows else (Reach(axis - rows + depth), None),
            lambda part: op.attributes,
        )
        for axis in range(len(graph.output(op).shape))
    )


def _read(node: TfliteNode) -> ReadOp:
    return ReadOp(Attributes(), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return WrittenOp("GATHER_ND", "GatherNdOptions", {}, version=4)


def _sample(rng: np.random.Generator) -> Graph:
    rank = int(rng.integers(1, 5))
    shape = sample_shape(rng, rank, 400)
    depth = int(rng.integers(1, rank + 1))
    rows = sample_shape(rng, int(rng.integers(0, 3)), 12)
    dtype, quantisation = sample_type(rng)
    index_type = DType.INT64 if rng.random() < 0.3 else DType.INT32
    picked = rng.integers(0, shape[:depth], (*rows, depth)).astype(index_type.numpy)
    tensors = [
        Tensor("x", shape, dtype, quantisation),
        Tensor("indices", picked.shape, index_type, None, picked),
        Tensor("y", (*rows, *shape[depth:]), dtype, quantisation),
    ]
    op = Op("gather_nd", "gather_nd", ("x", "indices"), ("y",))
    return Graph.build("sample", tensors, [op], ["x"], ["y"])


SPEC = OldForm(
    quantised=ALIKE,
    kind="gather_nd",
    attributes=Attributes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=_axes,
    tflite=TfliteBinding(("GATHER_ND",), _read, _write),
    types=frozenset(DType),
    limits="any type; int32 or int64 coordinates; the data may be constant",
)
