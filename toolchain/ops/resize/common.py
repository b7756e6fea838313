"""Parts of the resize kinds: attributes, shape rule, TFLite reader and writer, arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit, walks

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Within:
    """Where a block lies along one axis of a resized image.

    The whole resize turns `input` indices into `output` indices. The block begins at output index
    `begin`, and its own input begins at input index `first`.
    """

    input: int
    output: int
    begin: int = 0
    first: int = 0


@dataclass(frozen=True)
class Resized(kit.Attributes):
    """The new height and width. A block of an image also has its place in it: `rows`
    and `columns`.
    """

    height: int
    width: int
    rows: Within | None = field(default=None, kw_only=True)
    columns: Within | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Resize(Resized):
    """How output positions map to the input, by the names of TFLite's options.

    `legacy`: the model was uint8, and 128 was subtracted from its values.
    """

    align_corners: bool = False
    half_pixel_centers: bool = False
    legacy: bool = False


def infer_resize(op: kit.Operator[Resize]) -> kit.TensorTypes:
    """Shape rule. Raises ValueError for an input that is no NHWC image or a size below 1."""
    attributes, x = op.attributes, op.x
    if len(x.shape) != 4:
        raise ValueError(f"resizing needs a 4-dimensional NHWC input, not {list(x.shape)}")
    if min(attributes.height, attributes.width) < 1:
        raise ValueError(f"resizing to {attributes.height} x {attributes.width}")
    shape = (x.shape[0], attributes.height, attributes.width, x.shape[3])
    return (kit.TensorType(shape, x.dtype),)


def read_resize(node: kit.TfliteNode) -> kit.ReadOp:
    """The attributes of a TFLite resize with a constant size."""
    height, width = node.integers(1)
    corners, centers = bool(node.options.alignCorners), bool(node.options.halfPixelCenters)
    legacy = node.legacy and node.builtin == "RESIZE_BILINEAR"
    return kit.ReadOp(Resize(height, width, corners, centers, legacy), (0,))


def write_resize(op: kit.Operator[Resize], builtin: str, options_type: str) -> kit.WrittenOp:
    """The TFLite operator `builtin`, the inverse of `read_resize`."""
    attributes = op.attributes
    options = {
        "alignCorners": attributes.align_corners,
        "halfPixelCenters": attributes.half_pixel_centers,
    }
    size = kit.int32_constant("size", (attributes.height, attributes.width))
    return kit.WrittenOp(builtin, options_type, options, (size,), version=3)


def within(op: kit.AnyOperator, axis: int) -> Within:
    """Where the rows (axis 1) or columns (axis 2) of an operator lie, whether it is
    a block or not.
    """
    x, y, attributes = op.x, op.y, op.attributes
    assert isinstance(attributes, Resized)
    place = attributes.rows if axis == 1 else attributes.columns
    return place or Within(x.shape[axis], y.shape[axis])


def resize_axes(
    op: kit.Operator[Resized], neighbours: Callable[[int], tuple[Indices, Indices, int, int]]
) -> tuple[kit.Axis, ...]:
    """The axis map. `neighbours` returns, for the rows or columns of the output, the lowest and the
    highest input index that each reads.
    """

    def along(axis: int) -> kit.Axis:
        place = within(op, axis)
        reach = _covering(axis, *neighbours(axis))

        def block(part: kit.Part) -> kit.Attributes:
            begin, first = place.begin + part.begin, place.first + max(reach.first(part.begin), 0)
            moved = replace(place, begin=begin, first=first)
            if axis == 1:
                return replace(op.attributes, height=part.length, rows=moved)
            return replace(op.attributes, width=part.length, columns=moved)

        return kit.Axis(axis, (reach,), block)

    apart = [kit.Axis(axis, (kit.Reach(axis),)) for axis in (0, 3)]
    return (apart[0], along(1), along(2), apart[1])


def _covering(axis: int, lowest: Indices, highest: Indices, stride: int, divisor: int) -> kit.Reach:
    """The least reach of this slope that covers what each output index reads."""
    stride, divisor = max(stride, 1), max(divisor, 1)
    place = np.arange(len(lowest)) * stride
    before = int((place - divisor * (lowest + 1)).max()) + 1
    extent = int((divisor * (highest + 1) - place).max()) + before
    return kit.Reach(axis, stride, extent, before, divisor)


def interpolation_overlaps(
    op: kit.AnyOperator, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[kit.SafeOverlap, ...]:
    """The safe overlap of a bilinear kernel, which reads up to four pixels before it writes each
    value.

    `rows` and `columns` give the first input index that each output row or column reads.
    """
    x = op.x
    firsts = walks.first_pixels((x.shape[1], x.shape[2]), rows, columns, x.shape[0])
    pixels, channels = np.arange(len(firsts)), x.shape[3]
    lead = walks.lead_bytes(pixels + 1, walks.read_after(firsts, pixels + 1))
    if channels > 1:
        lead = max(lead, walks.lead_bytes(pixels, firsts))
    return (kit.SafeOverlap(0, 0, lead * channels * x.dtype.size_bytes),)


def image_sizes(x: kit.Tensor, y: kit.Tensor) -> dict[str, kit.Argument]:
    """The members that the parameters of all resize kernels begin with."""
    return {
        "batches": x.shape[0],
        "input_height": x.shape[1],
        "input_width": x.shape[2],
        "output_height": y.shape[1],
        "output_width": y.shape[2],
    }


def resize_call(function: str, params: kit.Struct) -> kit.Call:
    """A call of `function` with `params`, one input and one output."""
    return kit.Call(function, {"params": params, "source": kit.Input(0), "target": kit.Output(0)})


def sample_resize(rng: np.random.Generator, kind: str, x: kit.Tensor, both: bool) -> kit.Graph:
    """Random sizes: larger, smaller and equal. With `both`, corners and centres may both be
    aligned.
    """
    height, width = (int(d) for d in rng.integers(1, 24, 2))
    if rng.random() < 0.3:
        height, width = 2 * x.shape[1], 2 * x.shape[2]
    corners, centers = bool(rng.random() < 0.4), bool(rng.random() < 0.4)
    attributes = Resize(height, width, corners, centers and (both or not corners))
    return kit.sample(kind, attributes, x, name="resize")
