"""Bilinear resize in float32, between int8 tensors or float32 ones. ONNX Resize, mode linear.

Between two quantised tensors ONNX interpolates real values; the result is rounded to int8 once.
Places follow from the scales that the file gives, and each quotient, product and sum is rounded to
float32 in the order of ONNX Runtime's kernel. TFLite interpolates integers, and has other places
for floats: see `resize_bilinear`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.rounding import nearest
from toolchain.ops.elementwise.common import require_types, sample_quantisation
from toolchain.ops.readers.float32 import float32_form
from toolchain.ops.readers.onnx import image_axes, image_shape
from toolchain.ops.resize import common
from toolchain.ops.resize.common import Resized, Within
from toolchain.ops.resize.extents import extents_by_tables
from toolchain.ops.resize.resize_nearest import read_nearest

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


def _infer(op: kit.Operator[ResizeLinear]) -> kit.TensorTypes:
    attributes, x = op.attributes, op.x
    if len(x.shape) != 4 or x.dtype not in (kit.DType.INT8, kit.DType.FLOAT32):
        raise ValueError(f"needs an image NHWC of int8 or float32, not {x}")
    if min(attributes.height, attributes.width, *attributes.scales) <= 0:
        raise ValueError(f"resizing to {attributes.height} x {attributes.width}")
    if attributes.coordinates not in COORDINATES:
        raise ValueError(f"coordinates {attributes.coordinates!r}")
    shape = (x.shape[0], attributes.height, attributes.width, x.shape[3])
    return (kit.TensorType(shape, x.dtype),)


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


def _lines(op: kit.Operator[ResizeLinear]) -> tuple[_Line, _Line]:
    attributes = op.attributes
    lines = []
    for axis in (1, 2):
        place, length = common.within(op, axis), op.y.shape[axis]
        line = _line(attributes.coordinates, place.input, place.output, attributes.scales[axis - 1])
        lines.append(line.of_block(place, length))
    return lines[0], lines[1]


def _axes(op: kit.Operator[ResizeLinear]) -> tuple[kit.Axis, ...]:
    def neighbours(axis: int) -> tuple[common.Indices, common.Indices, int, int]:
        line, place = _lines(op)[axis - 1], common.within(op, axis)
        less = int(op.attributes.coordinates == "align_corners")
        return line.lower, line.upper, place.input - less, place.output - less

    return common.resize_axes(op, neighbours)


def _reference(op: kit.Operator[ResizeLinear], inputs: kit.Inputs) -> kit.Arrays:
    x, y = op.x, op.y
    data = (inputs[0].astype(np.int64) - x.q.zero_point).astype(np.float32) * np.float32(x.q.scale)
    total = _interpolated(op, data)
    stored = nearest(total / np.float32(y.q.scale)) + y.q.zero_point
    return (np.clip(stored, -128, 127).astype(np.int8),)


def _float_reference(op: kit.Operator[ResizeLinear], inputs: kit.Inputs) -> kit.Arrays:
    return (_interpolated(op, inputs[0].astype(np.float32)),)


def _interpolated(op: kit.Operator[ResizeLinear], data: Float) -> Float:
    """The resized image, operation by operation as ONNX Runtime's `UpsampleBilinear`."""
    rows, columns = _lines(op)

    def weighed(corner: Float, down: Float, across: Float) -> Float:
        weight = across[None, :, None] * down[:, None, None]
        product: Float = weight * corner
        return product

    top, bottom = data[:, rows.lower], data[:, rows.upper]
    left, right = columns.lower, columns.upper
    total = weighed(top[:, :, left], rows.near_lower, columns.near_lower)
    total = total + weighed(top[:, :, right], rows.near_lower, columns.near_upper)
    total = total + weighed(bottom[:, :, left], rows.near_upper, columns.near_lower)
    return total + weighed(bottom[:, :, right], rows.near_upper, columns.near_upper)


def _select(op: kit.Operator[ResizeLinear], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT8)
    x, y = op.x, op.y
    scales: dict[str, kit.Argument] = {
        "input_scale": x.q.scale,
        "input_zero_point": x.q.zero_point,
        "output_scale": y.q.scale,
        "output_zero_point": y.q.zero_point,
    }
    return _kernel(op, "thimble_resize_linear_s8", "thimble_resize_linear_params", scales)


def _float_select(op: kit.Operator[ResizeLinear], core: kit.Core) -> kit.Kernel:
    kernel = _kernel(op, "thimble_resize_linear_f32", "thimble_resize_linear_f32_params", {})
    return replace(kernel, find_terms=lambda: _float_terms(op))


def _float_terms(op: kit.Operator[ResizeLinear]) -> kit.Terms:
    batches, height, width, channels = op.y.shape
    rows = batches * height
    return {"call": 1.0, "row": rows, "pixel": rows * width, "value": rows * width * channels}


def _kernel(
    op: kit.Operator[ResizeLinear],
    function: str,
    struct: str,
    others: Mapping[str, kit.Argument],
) -> kit.Kernel:
    """A call of `function`, whose parameters have tables of places, and `others` at their end."""
    x, y = op.x, op.y
    if max(*x.shape[1:3], *y.shape[1:3]) > _LARGEST_SIDE:
        raise op.refused("an image above 32767 pixels a side")
    members: dict[str, kit.Argument] = {
        **common.image_sizes(x, y),
        "channels": x.shape[3],
        "rows": kit.Packed("rows"),
        "columns": kit.Packed("columns"),
        "row_weights": kit.Packed("row_weights"),
        "column_weights": kit.Packed("column_weights"),
        **others,
    }
    return kit.Kernel(
        (common.resize_call(function, kit.Struct(struct, members)),),
        extents_by_tables,
        constants=tuple(_tables(op)),
        find_overlaps=lambda: _overlaps(op),
    )


def _tables(op: kit.Operator[ResizeLinear]) -> Iterator[kit.Constant]:
    """Tables of rows and of columns: where each lies, and how much its neighbours weigh."""
    for axis, name in enumerate(("row", "column")):

        def places(axis: int = axis) -> kit.Array:
            line = _lines(op)[axis]
            return np.stack([line.lower, line.upper], axis=1).astype(np.int16)

        def weights(axis: int = axis) -> kit.Array:
            line = _lines(op)[axis]
            return np.stack([line.near_lower, line.near_upper], axis=1)

        yield kit.Constant(f"{name}s", places, f"two {name}s between which each lies")
        yield kit.Constant(f"{name}_weights", weights, "what the two weigh")


def _overlaps(op: kit.Operator[ResizeLinear]) -> tuple[kit.SafeOverlap, ...]:
    rows, columns = _lines(op)
    return common.interpolation_overlaps(op, rows.lower, columns.lower)


def _read_onnx(node: kit.OnnxNode) -> None:
    """Resize of an image in either mode."""
    if node.shape(0)[:2] != node.output_shape()[:2]:
        raise node.unsupported(
            "resizing the batch or the channels", "resize height and width alone"
        )
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


def _read_linear(node: kit.OnnxNode, coordinates: str) -> None:
    axes = image_axes(node)
    source, target = image_shape(node.shape(0)), image_shape(node.output_shape())
    scales, sizes = _scales(node), (target[1], target[2])
    q = node.output_quantisation(node.quantisation(0))
    attributes = ResizeLinear(*sizes, scales, coordinates)
    node.emit("resize_linear", attributes, [node.operand(0, axes, source)], q, axes, target)


def _scales(node: kit.OnnxNode) -> tuple[float, float]:
    """The scales of height and width that the file gives, or that follow from its sizes. They are 1
    where no side changes: ONNX Runtime then copies the image, whatever the scales.
    """
    source, target = image_shape(node.shape(0)), image_shape(node.output_shape())
    height, width = (target[axis] / source[axis] for axis in (1, 2))
    if node.has(2) and source != target:
        written = node.constant(2).real.reshape(-1)
        if written.size == len(node.shape(0)):
            height, width = (float(scale) for scale in _image_scales(written))
    return height, width


def _image_scales(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scales of height and width among those of N, C and one or two spatial dimensions."""
    return np.append(np.ones(4 - scales.size), scales[2:])[-2:]


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = tuple(int(rng.integers(1, high)) for high in (3, 10, 10, 9))
    height, width = (int(d) for d in rng.integers(1, 20, 2))
    coordinates = str(rng.choice(COORDINATES))
    scales = (height / shape[1], width / shape[2])
    q, out = sample_quantisation(rng), sample_quantisation(rng)
    if rng.random() < 0.7:
        out = q
    x = kit.Tensor("x", shape, kit.DType.INT8, q)
    attributes = ResizeLinear(height, width, scales, coordinates)
    return kit.sample("resize_linear", attributes, x, q=out, name="resize")


_INT8 = kit.Form(
    kind="resize_linear",
    attributes=ResizeLinear,
    infer=_infer,
    reference=_reference,
    select=_select,
    axes=_axes,
    sample=_sample,
    onnx=kit.OnnxBinding(("Resize",), _read_onnx),
    dtype=kit.DType.INT8,
    limits="NHWC; the size is constant; computed in float32; nearest: `resize_nearest`",
)
_FLOAT32 = replace(
    float32_form(_INT8, _INT8.limits, _float_reference, _float_select), onnx=_INT8.onnx
)
SPEC = kit.OpSpec((_INT8, _FLOAT32))
