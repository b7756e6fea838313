"""What both resize operators share: the attributes, shape rule, TFLite reader and writer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Attributes, Graph, Op, Tensor
from toolchain.ops._movement import int32_constant, integers
from toolchain.ops._walks import first_pixels, lead_bytes, read_after
from toolchain.ops.spec import ReadOp, SafeOverlap, TensorType, TfliteNode, WrittenOp


@dataclass(frozen=True)
class Resize(Attributes):
    """New height and width; how output positions fall on the input, as TFLite names it.

    `legacy`: as for uint8 images, of which 128 was taken.
    """

    height: int
    width: int
    align_corners: bool = False
    half_pixel_centers: bool = False
    legacy: bool = False


def resize_attributes(op: Op) -> Resize:
    assert isinstance(op.attributes, Resize)
    return op.attributes


def infer_resize(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    attributes, x = resize_attributes(op), graph.input(op, 0)
    if len(x.shape) != 4:
        raise ValueError(f"resizing needs a 4-dimensional NHWC input, not {list(x.shape)}")
    if min(attributes.height, attributes.width) < 1:
        raise ValueError(f"resizing to {attributes.height} x {attributes.width}")
    shape = (x.shape[0], attributes.height, attributes.width, x.shape[3])
    return (TensorType(shape, x.dtype),)


def read_resize(node: TfliteNode) -> ReadOp:
    height, width = integers(node, 1)
    corners, centers = bool(node.options.alignCorners), bool(node.options.halfPixelCenters)
    legacy = node.legacy and node.builtin == "RESIZE_BILINEAR"
    return ReadOp(Resize(height, width, corners, centers, legacy), (0,))


def write_resize(op: Op, builtin: str, options_type: str) -> WrittenOp:
    attributes = resize_attributes(op)
    options = {
        "alignCorners": attributes.align_corners,
        "halfPixelCenters": attributes.half_pixel_centers,
    }
    size = int32_constant("size", (attributes.height, attributes.width))
    return WrittenOp(builtin, options_type, options, (size,), version=3)


def interpolation_overlaps(
    op: Op, graph: Graph, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[SafeOverlap, ...]:
    """Pixel by pixel, channel by channel: each is read from up to four pixels and then written.

    `rows`, `columns`: the first of the two that each output row or column needs.
    """
    x = graph.input(op, 0)
    firsts = first_pixels((x.shape[1], x.shape[2]), rows, columns, x.shape[0])
    pixels, channels = np.arange(len(firsts)), x.shape[3]
    lead = lead_bytes(pixels + 1, read_after(firsts, pixels + 1))
    if channels > 1:
        lead = max(lead, lead_bytes(pixels, firsts))
    return (SafeOverlap(0, 0, lead * channels * x.dtype.size_bytes),)


def sample_resize(rng: np.random.Generator, kind: str, x: Tensor, both: bool) -> Graph:
    """Up, down and equal sizes; `both`: corners and centers may be asked for together."""
    height, width = (int(d) for d in rng.integers(1, 24, 2))
    if rng.random() < 0.3:
        height, width = 2 * x.shape[1], 2 * x.shape[2]
    corners, centers = bool(rng.random() < 0.4), bool(rng.random() < 0.4)
    attributes = Resize(height, width, corners, centers and (both or not corners))
    y = Tensor("y", (x.shape[0], height, width, x.shape[3]), x.dtype, x.quantisation)
    op = Op(kind, "resize", ("x",), ("y",), attributes)
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])
