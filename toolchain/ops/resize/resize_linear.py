"""Bilinear resize in float32. ONNX Resize, mode linear.

Between two quantised tensors ONNX interpolates real values. Each product and sum is rounded to
float32 in the order of ONNX Runtime's kernel; the result is rounded to int8 once. TFLite
interpolates integers: see `resize_bilinear`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops.arithmetic.rounding import nearest
from toolchain.ops.elementwise.common import require_types, sample_quantisation
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Constant, Kernel, Packed, SafeOverlap, Struct
from toolchain.ops.readers.onnx import image_axes, image_shape
from toolchain.ops.resize.common import (
    Indices,
    Resize,
    Resized,
    Within,
    image_sizes,
    interpolation_overlaps,
    resize_axes,
    resize_call,
    within,
)
from toolchain.ops.resize.extents import extents_by_tables
from toolchain.ops.resize.resize_nearest import read_nearest
from toolchain.ops.spec import Array, Axis, OnnxBinding, OnnxNode, TensorType

COORDINATES = ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel")
Float = NDArray[np.float32]
_LARGEST_SIDE = np.iinfo(np.int16).max


@dataclass(frozen=True)
class ResizeLinear(Resized):
    """`scales` are output size / input size per side, as the file gives them.

    `coordinates` is one of COORDINATES: how output positions map to the input.
    """

    scales: tuple[float, float]
    coordinates: str


def _attributes(op: Op) -> ResizeLinear:
    assert isinstance(op.attributes, ResizeLinear)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    attributes, x = _attributes(op), graph.input(op, 0)
    if len(x.shape) != 4 or x.dtype is not DType.INT8:
        raise ValueError(f"needs an int8 image NHWC, not {x}")
    if min(attributes.height, attributes.width, *attributes.scales) <= 0:
        raise ValueError(f"resizing to {attributes.height} x {attributes.width}")
    if attributes.coordinates not in COORDINATES:
        raise ValueError(f"coordinates {attributes.coordinates!r}")
    shape = (x.shape[0], attributes.height, attributes.width, x.shape[3])
    return (TensorType(shape, x.dtype),)


@dataclass(frozen=True)
class _Line:
    """For each output position its two neighbours and what they weigh."""

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    near_lower: Float
    near_upper: Float

    def of_block(self, place: Within, length: int) -> _Line:
        run = slice(place.begin, place.begin + length)
        lower, upper = self.lower[run] - place.first, self.upper[run] - place.first
        return _Line(lower, upper, self.near_lower[run], self.near_upper[run])


def _line(coordinates: str, old: int, new: int, scale: float) -> _Line:
    """ONNX Runtime's `SetupUpsampleBilinear` along one axis."""
    place, half = np.arange(new, dtype=np.float32), np.float32(0.5)
    ratio = np.float32(scale)
    if ratio != 1:
        if coordinates == "align_corners":
            place = place * np.float32(old - 1) / np.float32(max(new - 1, 1))
        elif coordinates == "asymmetric":
            place = place / ratio
        elif coordinates == "half_pixel" or new > 1:
            place = (place + half) / ratio - half
        else:
            place = np.zeros(new, np.float32)
    place = np.clip(place, np.float32(0), np.float32(old - 1))
    lower = np.minimum(place.astype(np.int64), old - 1)
    upper = np.minimum(lower + 1, old - 1)
    near_upper = np.abs(place - lower.astype(np.float32))
    near_lower = np.abs(place - upper.astype(np.float32))
    same = lower == upper
    return _Line(
        lower,
        upper,
        np.where(same, half, near_lower).astype(np.float32),
        np.where(same, half, near_upper).astype(np.float32),
    )


def _lines(op: Op, graph: Graph) -> tuple[_Line, _Line]:
    attributes = _attributes(op)
    lines = []
    for axis in (1, 2):
        place, length = within(op, graph, axis), graph.output(op).shape[axis]
        line = _line(attributes.coordinates, place.input, place.output, attributes.scales[axis - 1])
        lines.append(line.of_block(place, length))
    return lines[0], lines[1]


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    def neighbours(axis: int) -> tuple[Indices, Indices, int, int]:
        line, place = _lines(op, graph)[axis - 1], within(op, graph, axis)
        less = int(_attributes(op).coordinates == "align_corners")
        return line.lower, line.upper, place.input - less, place.output - less

    return resize_axes(op, graph, neighbours)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y = graph.input(op, 0), graph.output(op)
    rows, columns = _lines(op, graph)
    data: Float = (inputs[0].astype(np.int64) - x.q.zero_point).astype(np.float32) * np.float32(
        x.q.scale
    )

    def weighed(corner: Float, down: Float, across: Float) -> Float:
        weight = across[None, :, None] * down[:, None, None]
        product: Float = weight * corner
        return product

    top, bottom = data[:, rows.lower], data[:, rows.upper]
    left, right = columns.lower, columns.upper
    total = weighed(top[:, :, left], rows.near_lower, columns.near_lower)
    total = total + weighed(top[:, :, right], rows.near_lower, columns.near_upper)
    total = total + weighed(bottom[:, :, left], rows.near_upper, columns.near_lower)
    total = total + weighed(bottom[:, :, right], rows.near_upper, columns.near_upper)
    stored = nearest(total / np.float32(y.q.scale)) + y.q.zero_point
    return (np.clip(stored, -128, 127).astype(np.int8),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT8)
    x, y = graph.input(op, 0), graph.output(op)
    if max(*x.shape[1:3], *y.shape[1:3]) > _LARGEST_SIDE:
        raise UnsupportedError(f"resize_linear {op.name!r}: an image above 32767 pixels a side")
    params = Struct(
        "thimble_resize_linear_params",
        {
            **image_sizes(x, y),
            "channels": x.shape[3],
            "rows": Packed("rows"),
            "columns": Packed("columns"),
            "row_weights": Packed("row_weights"),
            "column_weights": Packed("column_weights"),
            "input_scale": x.q.scale,
            "input_zero_point": x.q.zero_point,
            "output_scale": y.q.scale,
            "output_zero_point": y.q.zero_point,
        },
    )
    return Kernel(
        (resize_call("thimble_resize_linear_s8", params),),
        extents_by_tables,
        constants=tuple(_tables(op, graph)),
        find_overlaps=lambda: _overlaps(op, graph),
    )


def _tables(op: Op, graph: Graph) -> Iterator[Constant]:
    """Of rows and of columns: where each lies, and what its neighbours weigh."""
    for axis, name in enumerate(("row", "column")):

        def places(axis: int = axis) -> Array:
            line = _lines(op, graph)[axis]
            return np.stack([line.lower, line.upper], axis=1).astype(np.int16)

        def weights(axis: int = axis) -> Array:
            line = _lines(op, graph)[axis]
            return np.stack([line.near_lower, line.near_upper], axis=1)

        yield Constant(f"{name}s", places, f"two {name}s between which each lies")
        yield Constant(f"{name}_weights", weights, "what the two weigh")


def _overlaps(op: Op, graph: Graph) -> tuple[SafeOverlap, ...]:
    rows, columns = _lines(op, graph)
    return interpolation_overlaps(op, graph, rows.lower, columns.lower)


def _read_onnx(node: OnnxNode) -> None:
    """Resize of an image in either mode."""
    if node.shape(0)[:2] != node.output_shape()[:2]:
        raise node.unsupported("resizing the batch or the channels")
    mode = node.attribute("mode", "nearest")
    coordinates = node.attribute("coordinate_transformation_mode", "half_pixel")
    if mode == "nearest":
        read_nearest(node, coordinates, _scales(node))
    elif mode not in ("linear", "bilinear"):
        raise node.unsupported(f"mode {mode!r}", "resize by mode nearest or linear")
    elif coordinates not in COORDINATES:
        raise node.unsupported(f"{coordinates!r} coordinates", f"use {' or '.join(COORDINATES)}")
    elif node.attribute("antialias", 0):
        raise node.unsupported("antialias", "export with antialias off")
    else:
        _read_linear(node, coordinates)


def _read_linear(node: OnnxNode, coordinates: str) -> None:
    axes = image_axes(node)
    source, target = image_shape(node.shape(0)), image_shape(node.output_shape())
    scales, sizes = _scales(node), (target[1], target[2])
    q = node.output_quantisation(node.quantisation(0))
    if not node.in_float:
        attributes = ResizeLinear(*sizes, scales, coordinates)
        node.emit("resize_linear", attributes, [node.operand(0, axes, source)], q, axes, target)
        return
    whole = [size / scale for size, scale in zip(sizes, scales, strict=True)]
    if any(abs(size - round(size)) > 1e-4 for size in whole):
        raise node.unsupported("its scales are not those of its sizes", "export it with sizes")
    corners = coordinates == "align_corners"
    centers = coordinates in ("half_pixel", "pytorch_half_pixel")
    bilinear = Resize(*sizes, corners, centers)
    node.emit("resize_bilinear", bilinear, [node.operand(0, axes, source)], q, axes, target)


def _scales(node: OnnxNode) -> tuple[float, float]:
    """Of height and width: those that the file gives, or those of its sizes."""
    source, target = image_shape(node.shape(0)), image_shape(node.output_shape())
    height, width = (target[axis] / source[axis] for axis in (1, 2))
    if node.has(2):
        written = node.constant(2).real.reshape(-1)
        if written.size == len(node.shape(0)):
            height, width = (float(scale) for scale in _image_scales(written))
    return height, width


def _image_scales(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of height and width, from those of N, C and one or two spatial dimensions."""
    return np.append(np.ones(4 - scales.size), scales[2:])[-2:]


def _sample(rng: np.random.Generator) -> Graph:
    shape = tuple(int(rng.integers(1, high)) for high in (3, 10, 10, 9))
    height, width = (int(d) for d in rng.integers(1, 20, 2))
    coordinates = str(rng.choice(COORDINATES))
    scales = (height / shape[1], width / shape[2])
    q, out = sample_quantisation(rng), sample_quantisation(rng)
    if rng.random() < 0.7:
        out = q
    x = Tensor("x", shape, DType.INT8, q)
    y = Tensor("y", (shape[0], height, width, shape[3]), DType.INT8, out)
    attributes = ResizeLinear(height, width, scales, coordinates)
    op = Op("resize_linear", "resize", ("x",), ("y",), attributes)
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


SPEC = OldForm(
    kind="resize_linear",
    attributes=ResizeLinear,
    infer=_infer,
    reference=_reference,
    select=_select,
    axes=_axes,
    sample=_sample,
    onnx=OnnxBinding(("Resize",), _read_onnx),
    limits="int8, NHWC; the size is constant; computed in float32; nearest: `resize_nearest`",
)
