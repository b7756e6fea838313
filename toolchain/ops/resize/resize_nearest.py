"""Resize that copies the nearest pixel. TFLite RESIZE_NEAREST_NEIGHBOR; any element type.

TFLite computes the nearest index in float32. The compiler does so once per row and column, so the
kernel needs no floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit, walks
from toolchain.ops.movement.gather import Gather
from toolchain.ops.readers.onnx import image_axes, image_shape
from toolchain.ops.resize import common
from toolchain.ops.resize.common import Resize
from toolchain.ops.resize.extents import extents_by_tables

_HALFWAY = np.float32(1e-6)
"""So near to the middle between two pixels a place counts as in it, since places are quotients in
float32: ONNX Runtime as of its issue 28291. 1.31.1 moves a place that is 9.54e-7 off, none at
1.01e-6."""


def nearest(attributes: Resize, input_size: int, output_size: int) -> list[int]:
    """The input index of each output index (`GetNearestNeighbor`, in float32)."""
    if attributes.align_corners and output_size > 1:
        scale = np.float32(input_size - 1) / np.float32(output_size - 1)
    else:
        scale = np.float32(input_size) / np.float32(output_size)
    offset = np.float32(0.5 if attributes.half_pixel_centers else 0.0)
    result = []
    for position in range(output_size):
        place = float((np.float32(position) + offset) * scale)
        index = math.floor(place + 0.5) if attributes.align_corners else math.floor(place)
        result.append(min(index, input_size - 1))
    return result


def _reference(op: kit.Operator[Resize], inputs: kit.Inputs) -> kit.Arrays:
    rows, columns = _sources(op, 1), _sources(op, 2)
    return (inputs[0][:, rows][:, :, columns],)


def _sources(op: kit.Operator[Resize], axis: int) -> NDArray[np.int64]:
    """The row (axis 1) or column (axis 2) that each one of the output copies."""
    place, attributes = common.within(op, axis), op.attributes
    whole = np.array(nearest(attributes, place.input, place.output), np.int64)
    length = op.y.shape[axis]
    return whole[place.begin : place.begin + length] - place.first


def _axes(op: kit.Operator[Resize]) -> tuple[kit.Axis, ...]:
    def neighbours(axis: int) -> tuple[common.Indices, common.Indices, int, int]:
        sources, place = _sources(op, axis), common.within(op, axis)
        less = int(op.attributes.align_corners)
        return sources, sources, place.input - less, place.output - less

    return common.resize_axes(op, neighbours)


def _select(op: kit.Operator[Resize], core: kit.Core) -> kit.Kernel:
    x, y = op.x, op.y
    if max(*x.shape[1:3], *y.shape[1:3]) > np.iinfo(np.int16).max:
        raise op.refused("an image above 32767 pixels a side")
    params = kit.Struct(
        "thimble_resize_nearest_params",
        {
            **common.image_sizes(x, y),
            "pixel_bytes": x.shape[3] * x.dtype.size_bytes,
            "rows": kit.Packed("rows"),
            "columns": kit.Packed("columns"),
        },
    )
    return kit.Kernel(
        (common.resize_call("thimble_resize_nearest", params),),
        extents_by_tables,
        constants=(
            kit.Constant("rows", lambda: _table(op, 1), "input row of each output row"),
            kit.Constant("columns", lambda: _table(op, 2), "input column of each output column"),
        ),
        find_overlaps=lambda: _overlaps(op),
        find_terms=lambda: _terms(op),
    )


def _terms(op: kit.Operator[Resize]) -> kit.Terms:
    """`thimble_resize_nearest`: a row is copied pixel by pixel, or from the same row before it."""
    x, y = op.x, op.y
    batches, height, width, channels = y.shape
    pixel_bytes = channels * x.dtype.size_bytes
    rows = batches * (1 + int(np.count_nonzero(np.diff(_table(op, 1)))))
    again = batches * height - rows
    pixels = rows * width
    return {
        "call": 1.0,
        "row": rows,
        "pixel": pixels,
        "pixel's 16 bytes": pixels * (pixel_bytes // 16),
        "pixel's word": pixels * (pixel_bytes % 16 // 4),
        "pixel's byte": pixels * (pixel_bytes % 4),
        "row again": again,
        "64 bytes again": again * width * pixel_bytes / 64,
    }


def _table(op: kit.Operator[Resize], axis: int) -> kit.Array:
    return _sources(op, axis).astype(np.int16)


def _overlaps(op: kit.Operator[Resize]) -> tuple[kit.SafeOverlap, ...]:
    """The kernel copies pixel by pixel with memcpy, whose two ends may not overlap. It copies a
    repeated row from the output.
    """
    x = op.x
    rows, columns = _sources(op, 1), _sources(op, 2)
    rows[1:][rows[1:] == rows[:-1]] = walks.NEVER
    firsts = walks.first_pixels((x.shape[1], x.shape[2]), rows, columns, x.shape[0])
    pixels = np.arange(len(firsts))
    lead = walks.lead_bytes(pixels + 1, walks.read_after(firsts, pixels))
    return (kit.SafeOverlap(0, 0, lead * x.shape[3] * x.dtype.size_bytes),)


def _sample(rng: np.random.Generator) -> kit.Graph:
    batches, height, width, channels = (int(rng.integers(1, high)) for high in (3, 12, 12, 20))
    x = kit.Tensor(
        "x", (batches, height, width, channels), *kit.sample_type(rng, (kit.DType.FLOAT32,))
    )
    return common.sample_resize(rng, "resize_nearest", x, both=True)


def read_nearest(node: kit.OnnxNode, coordinates: str, scales: Sequence[float]) -> None:
    """Reads ONNX Resize of an image: as TFLite maps positions if it does, else by two gathers.

    `scales` of height and width are those that the file gives, or those of the sizes.
    """
    axes = image_axes(node)
    source, target = image_shape(node.shape(0)), image_shape(node.output_shape())
    x, q = node.operand(0, axes, source), node.quantisation(0)
    wanted = [
        _onnx_nearest(node, coordinates, scale, source[axis], target[axis])
        for axis, scale in zip((1, 2), scales, strict=True)
    ]
    for corners, centers in ((False, False), (False, True), (True, False), (True, True)):
        attributes = Resize(target[1], target[2], corners, centers)
        rows, columns = (nearest(attributes, source[axis], target[axis]) for axis in (1, 2))
        if [rows, columns] == wanted:
            node.emit("resize_nearest", attributes, [x], q, axes, target)
            return
    taken_rows, taken_columns = (
        node.add_constant(stem, np.array(indices, np.int32), None)
        for stem, indices in zip(("rows", "columns"), wanted, strict=True)
    )
    whole = (source[0], target[1], source[2], source[3])
    taken = node.intermediate("gather", Gather(1), [x, taken_rows], whole, q)
    node.emit("gather", Gather(2), [taken, taken_columns], q, axes, target)


def _onnx_nearest(
    node: kit.OnnxNode, coordinates: str, scale: float, old: int, new: int
) -> list[int]:
    """The input index for each output index, computed in float32 as ONNX Runtime does."""
    place = np.arange(new, dtype=np.float32)
    one = np.float32(scale)
    if coordinates == "align_corners":
        place = place * np.float32(old - 1) / np.float32(max(new - 1, 1))
    elif coordinates == "asymmetric":
        place = place / one
    elif coordinates == "pytorch_half_pixel" and new == 1:
        place = np.zeros(new, np.float32)
    elif coordinates in ("half_pixel", "pytorch_half_pixel"):
        place = (place + np.float32(0.5)) / one - np.float32(0.5)
    else:
        raise node.unsupported(
            f"{coordinates!r} coordinates",
            "use asymmetric, half_pixel, pytorch_half_pixel or align_corners",
        )
    rounding = node.attribute("nearest_mode", "round_prefer_floor")
    below = np.floor(place)
    halfway = np.abs(place - below - np.float32(0.5)) <= _HALFWAY
    functions: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda p: np.where(halfway, below, np.ceil(p - 0.5)),
        "round_prefer_ceil": lambda p: np.where(halfway, below + 1, np.floor(p + 0.5)),
    }
    if rounding not in functions:
        raise node.unsupported(f"nearest_mode {rounding!r}", f"use {' or '.join(functions)}")
    indices = np.clip(functions[rounding](place), 0, old - 1)
    return [int(i) for i in indices]


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="resize_nearest",
    attributes=Resize,
    infer=common.infer_resize,
    reference=_reference,
    select=_select,
    axes=_axes,
    sample=_sample,
    tflite=kit.TfliteBinding(
        ("RESIZE_NEAREST_NEIGHBOR",),
        common.read_resize,
        lambda op: common.write_resize(
            op, "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"
        ),
    ),
    types=frozenset(kit.DType),
    limits="any type, NHWC; the size is constant",
)
