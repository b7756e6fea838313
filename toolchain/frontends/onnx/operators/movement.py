"""Operators that pick, repeat and join values, and images of other sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.operators.older import given, rank, without
from toolchain.frontends.onnx.operators.row import Older, Operator, Trait
from toolchain.frontends.onnx.writing import Writer

_INT64 = 7
"""`TensorProto.INT64`."""
_SPATIAL = ("height", "width")


def _older_slice(writer: Writer) -> None:
    node = writer.node
    if "starts" not in node.attributes:
        return
    starts, ends = node.attributes["starts"], node.attributes["ends"]
    axes = node.attributes.get("axes", list(range(len(starts))))
    lists = {"starts": starts, "ends": ends, "axes": axes}
    names = tuple(writer.constant(values, np.int64, name) for name, values in lists.items())
    writer.put(without(replace(node, inputs=(node.inputs[0], *names)), *lists))


def _older_pad(writer: Writer) -> None:
    node = writer.node
    if len(node.inputs) > 1:
        return
    pads = node.attributes.get("pads", node.attributes.get("paddings", []))
    value = node.attributes.get("value", 0.0)
    inputs = (
        node.inputs[0],
        writer.constant(pads, np.int64, "pads"),
        writer.constant(value, np.float32, "value"),
    )
    writer.put(without(replace(node, inputs=inputs), "pads", "paddings", "value"))


def _upsample(writer: Writer) -> None:
    if len(writer.node.inputs) > 1:
        scales = writer.node.inputs[1]
    else:
        factors = writer.node.attributes.get("scales")
        if factors is None:
            sizes = (writer.node.attributes.get(f"{n}_scale", 1.0) for n in _SPATIAL)
            factors = [1.0, 1.0, *sizes]
        scales = writer.constant(factors, np.float32, "scales")
    _answer_resize(writer, scales, "floor")


def _older_resize(writer: Writer) -> None:
    """An enlarged image takes the pixel before, a reduced one the pixel after: so does ONNX
    Runtime, which opset 10 leaves undefined.
    """
    scales = writer.constants.get(writer.node.inputs[1])
    factors = [] if scales is None else scales.astype(float).reshape(-1).tolist()
    reduces = any(factor < 1 for factor in factors)
    if reduces and any(factor > 1 for factor in factors):
        raise InputError(f"{writer.node} of opset 10 enlarges one dimension and reduces another")
    _answer_resize(writer, writer.node.inputs[1], "ceil" if reduces else "floor")


def _answer_resize(writer: Writer, scales: str, nearest: str) -> None:
    mode = writer.node.attributes.get("mode", "nearest")
    writer.answer(
        "Resize",
        (writer.node.inputs[0], "", scales),
        mode="linear" if mode == "bilinear" else mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode=nearest,
    )


def _older_concat(writer: Writer) -> None:
    writer.put(replace(writer.node, attributes={"axis": 1} | dict(writer.node.attributes)))


def _older_tile(writer: Writer) -> None:
    node = writer.node
    if len(node.inputs) < 3:
        return
    count, axis = (writer.constants.get(name) for name in node.inputs[1:3])
    if count is None or axis is None:
        raise InputError(f"{node} of opset {writer.opset} repeats as often as it computes")
    repeats = np.ones(rank(writer, node.inputs[0]), np.int64)
    repeats[int(axis.reshape(()))] = int(count.reshape(()))
    name = writer.constant(repeats, np.int64, "repeats")
    writer.put(replace(node, inputs=(node.inputs[0], name)))


def _reverse_sequence(writer: Writer) -> None:
    node = writer.node
    axis, lengths = int(node.attributes.get("time_axis", 0)), writer.constants.get(node.inputs[1])
    if lengths is None or np.any(lengths != writer.shapes[node.inputs[0]][axis]):
        return
    limits = ([-1], [np.iinfo(np.int64).min], [axis], [-1])
    writer.answer("Slice", [node.inputs[0], *(writer.integers(x) for x in limits)])


def _one_hot(writer: Writer) -> None:
    """OneHot: compare indices with the places 0, 1, ... along the new axis; negative ones count
    from the end."""
    node = writer.node
    depth, values = (writer.constants.get(name) for name in node.inputs[1:])
    if depth is None or values is None:
        return
    shape = list(writer.shapes[node.inputs[0]])
    count, dimensions = int(depth.reshape(-1)[0]), len(shape) + 1
    axis = int(node.attributes.get("axis", -1)) % dimensions
    indices = writer.op("Cast", [node.inputs[0]], to=_INT64)
    from_end = writer.op("Add", [indices, writer.integers(count)])
    negative = writer.op("Less", [indices, writer.integers(0)])
    place = writer.op("Where", [negative, from_end, indices])
    shape.insert(axis, 1)
    column = writer.reshaped(place, shape)
    places = np.arange(count).reshape([-1 if a == axis else 1 for a in range(dimensions)])
    hit = writer.op("Equal", [column, writer.integers(places)])
    off, on = (writer.constant(value, values.dtype.type) for value in values)
    writer.answer("Where", [hit, on, off])


_MOVES = Trait.KEEPS_VALUES
_PARTS = Trait.KEEPS_VALUES | Trait.TAKES_PARTS
_ENLARGES = Trait.KEEPS_VALUES | Trait.ENLARGES

ROWS = (
    Operator("Concat", _MOVES | Trait.JOINS, older=Older(4, _older_concat)),
    Operator("Gather", _PARTS | Trait.PICKS),
    Operator("Slice", _PARTS, older=Older(10, _older_slice)),
    Operator("Split", _PARTS, older=Older(13, given(("split", np.int64)))),
    Operator("Expand", _ENLARGES),
    Operator("Tile", _ENLARGES, older=Older(6, _older_tile)),
    Operator(
        "Pad",
        _ENLARGES,
        older=Older(11, _older_pad),
        modes=("constant", "reflect", "edge", "wrap"),
    ),
    Operator(
        "Resize",
        _ENLARGES,
        older=Older(11, _older_resize),
        modes=("nearest", "linear", "cubic"),
    ),
    Operator("Upsample", older=Older(13, _upsample), modes=("nearest", "linear")),
    Operator("MaxPool", _MOVES),
    Operator("GlobalMaxPool", _MOVES),
    Operator("ArgMax", Trait.ORDERS),
    Operator("ArgMin", Trait.ORDERS),
    Operator("TopK", older=Older(10, given(("k", np.int64)))),
    Operator(
        "ReverseSequence",
        composed=_reverse_sequence,
        written="constant lengths that are all the input's",
    ),
    Operator("OneHot", Trait.ENLARGES, composed=_one_hot, written="a constant depth and values"),
)
