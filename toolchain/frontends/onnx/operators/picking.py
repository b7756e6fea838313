"""GatherElements, GatherND, ScatterElements and ScatterND, written as Gathers of flattened tensors.

Places are counted in row-major order. With constant indices they are constant, too: a scatter picks
from its data with its updates behind them. With computed indices, those of GatherElements and
GatherND are computed by integer operators; those of a scatter stay where the model left them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.frontends.onnx.model import Array, Node
from toolchain.frontends.onnx.operators.row import Operator
from toolchain.frontends.onnx.writing import Writer
from toolchain.frontends.unread import Unread

_Places = NDArray[np.int64]


def _pick_elements(writer: Writer) -> None:
    """`y[i, j] = x[index[i, j], j]` for axis 0."""
    data, indices = writer.node.inputs
    shape, picked = writer.shape(data), writer.shape(indices)
    axis = _axis(writer.node, len(shape))
    strides = _strides(shape)
    others = sum(
        _along(np.arange(size, dtype=np.int64) * strides[place], place, len(shape))
        for place, size in enumerate(picked)
        if place != axis
    )
    others = np.broadcast_to(np.asarray(others, np.int64), picked)
    known = writer.constants.get(indices)
    if known is not None:
        places = others + _within(writer.node, known, shape[axis]) * strides[axis]
        _answer(writer, writer.reshaped(data, (-1,)), writer.integers(places.ravel()))
        return
    steps = _wrapped(writer, indices, shape[axis])
    moved = writer.op("Mul", [steps, writer.integers(strides[axis])])
    places_in_flat = writer.op("Add", [moved, writer.integers(others)])
    _answer(writer, writer.reshaped(data, (-1,)), writer.reshaped(places_in_flat, (-1,)))


def _pick_rows(writer: Writer) -> None:
    """`y[i] = x[index[i, 0], index[i, 1], ...]`."""
    data, indices = writer.node.inputs
    shape, given = writer.shape(data), writer.shape(indices)
    batched = int(writer.node.attributes.get("batch_dims", 0))
    depth = batched + given[-1]
    if not 0 <= batched < len(given) or depth > len(shape):
        raise InputError(f"{writer.node}: {given[-1]} coordinates into {list(shape)}")
    sizes, run = shape[:depth], shape[depth:]
    strides = _strides(sizes)
    first = sum(
        _along(np.arange(size, dtype=np.int64) * strides[place], place, len(given) - 1)
        for place, size in enumerate(shape[:batched])
    )
    first = np.broadcast_to(np.asarray(first, np.int64), given[:-1])
    rows = writer.reshaped(data, (-1, *run))
    known = writer.constants.get(indices)
    if known is not None:
        inner = _within(writer.node, known, np.array(sizes[batched:]))
        places = first + inner @ np.array(strides[batched:], np.int64)
        _answer(writer, rows, writer.integers(places.ravel()))
        return
    steps = _wrapped(writer, indices, sizes[batched:])
    weighed = writer.op("Mul", [steps, writer.integers(strides[batched:])])
    parts = [_part(writer, weighed, number, len(given)) for number in range(given[-1])]
    total = parts[0]
    for part in parts[1:]:
        total = writer.op("Add", [total, part])
    offset = writer.integers(first[..., None])
    _answer(writer, rows, writer.reshaped(writer.op("Add", [total, offset]), (-1,)))


def _put_elements(writer: Writer) -> None:
    """`y = x`, then `y[index[i, j], j] = update[i, j]` for axis 0."""
    data, indices, _ = writer.node.inputs
    known = writer.constants.get(indices)
    if known is None or not _replaces(writer.node):
        return
    shape = writer.shape(data)
    axis = _axis(writer.node, len(shape))
    coordinates: list[_Places] = list(np.indices(known.shape, np.int64))
    coordinates[axis] = _within(writer.node, known, shape[axis])
    _scatter(writer, np.ravel_multi_index(coordinates, shape).ravel(), math.prod(shape), ())


def _put_rows(writer: Writer) -> None:
    """`y = x`, then `y[index[i, 0], index[i, 1], ...] = update[i]`."""
    data, indices, _ = writer.node.inputs
    known = writer.constants.get(indices)
    if known is None or not _replaces(writer.node):
        return
    shape, depth = writer.shape(data), known.shape[-1]
    sizes, run = shape[:depth], shape[depth:]
    inner = _within(writer.node, known, np.array(sizes))
    places = inner @ np.array(_strides(sizes), np.int64)
    _scatter(writer, places.ravel(), math.prod(sizes), run)


def _scatter(writer: Writer, places: _Places, rows: int, run: tuple[int, ...]) -> None:
    """Rows of shape `run` of the updates take the `places` among the `rows` of the data."""
    data, _, updates = writer.node.inputs
    picks = np.arange(rows, dtype=np.int64)
    picks[places] = rows + np.arange(places.size)
    operands = [writer.reshaped(name, (-1, *run)) for name in (data, updates)]
    both = writer.op("Concat", operands, axis=0)
    _answer(writer, both, writer.integers(picks))


def _answer(writer: Writer, rows: str, picks: str) -> None:
    picked = writer.op("Gather", [rows, picks], axis=0)
    shape = writer.shape(writer.node.outputs[0])
    writer.answer("Reshape", [picked, writer.integers(shape)])


def _part(writer: Writer, name: str, number: int, rank: int) -> str:
    limits = ([number], [number + 1], [rank - 1], [1])
    return writer.op("Slice", [name, *(writer.integers(x) for x in limits)])


def _axis(node: Node, rank: int) -> int:
    axis = int(node.attributes.get("axis", 0))
    if not -rank <= axis < rank:
        raise InputError(f"{node}: its axis {axis} of {rank} dimensions")
    return axis % rank


def _replaces(node: Node) -> bool:
    return str(node.attributes.get("reduction", "none")) == "none"


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[place + 1 :]) for place in range(len(shape))]


def _along(values: _Places, place: int, rank: int) -> _Places:
    return values.reshape([-1 if axis == place else 1 for axis in range(rank)])


def _within(node: Node, indices: Array, sizes: int | NDArray[np.int64]) -> _Places:
    """Indices from 0 on. Raises InputError where one is out of range."""
    given = indices.astype(np.int64)
    if ((given < -np.asarray(sizes)) | (given >= sizes)).any():
        raise InputError(f"{node}: its indices reach beyond the tensor's {sizes} elements")
    return np.where(given < 0, given + sizes, given)


def _wrapped(writer: Writer, indices: str, sizes: int | Sequence[int]) -> str:
    """Computed indices from 0 on: ONNX counts negative ones from the end."""
    return writer.op("Mod", [indices, writer.integers(sizes)])


_SCATTERED = "constant indices and the reduction 'none'"

ROWS = (
    Operator("GatherElements", composed=_pick_elements),
    Operator("GatherND", composed=_pick_rows),
    Operator(
        "Scatter",
        unread=Unread(
            "it is ScatterElements from opset 11 on",
            "convert the model with onnx.version_converter.convert_version(model, 13)",
        ),
    ),
    Operator("ScatterElements", composed=_put_elements, written=_SCATTERED),
    Operator("ScatterND", composed=_put_rows, written=_SCATTERED),
)
