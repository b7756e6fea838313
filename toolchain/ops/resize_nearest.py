"""Resize by copying the nearest pixel. TFLite RESIZE_NEAREST_NEIGHBOR; any element type.

TFLite finds the nearest index in float32. The compiler does that, once for each row and column, so
that the kernel needs no floating point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops._movement import sample_type
from toolchain.ops._onnx_movement import read_onnx_resize
from toolchain.ops._resizing import (
    Resize,
    infer_resize,
    read_resize,
    resize_attributes,
    sample_resize,
    write_resize,
)
from toolchain.ops.spec import Array, Constant, Lowering, OnnxBinding, OpSpec, TfliteBinding


def nearest(attributes: Resize, input_size: int, output_size: int) -> list[int]:
    """The input index for each output index (`GetNearestNeighbor`, in float32)."""
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


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y = graph.input(op, 0), graph.output(op)
    rows = nearest(resize_attributes(op), x.shape[1], y.shape[1])
    columns = nearest(resize_attributes(op), x.shape[2], y.shape[2])
    return (inputs[0][:, rows][:, :, columns],)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    x, y = graph.input(op, 0), graph.output(op)
    if max(*x.shape[1:3], *y.shape[1:3]) > np.iinfo(np.int16).max:
        raise UnsupportedError(f"resize_nearest {op.name!r}: an image above 32767 pixels a side")
    attributes = resize_attributes(op)
    rows = np.array(nearest(attributes, x.shape[1], y.shape[1]), np.int16)
    columns = np.array(nearest(attributes, x.shape[2], y.shape[2]), np.int16)
    return Lowering(
        functions=("thimble_resize_nearest",),
        constants=(
            Constant("rows", rows, "input row of each output row"),
            Constant("columns", columns, "input column of each output column"),
        ),
        fields={
            "batches": x.shape[0],
            "input_height": x.shape[1],
            "input_width": x.shape[2],
            "output_height": y.shape[1],
            "output_width": y.shape[2],
            "pixel_bytes": x.shape[3] * x.dtype.size_bytes,
        },
    )


def _sample(rng: np.random.Generator) -> Graph:
    batches, height, width, channels = (int(rng.integers(1, high)) for high in (3, 12, 12, 20))
    x = Tensor("x", (batches, height, width, channels), *sample_type(rng, (DType.FLOAT32,)))
    return sample_resize(rng, "resize_nearest", x, both=True)


SPEC = OpSpec(
    kind="resize_nearest",
    attributes=Resize,
    infer=infer_resize,
    reference=_reference,
    lower=_lower,
    sample=_sample,
    tflite=TfliteBinding(
        ("RESIZE_NEAREST_NEIGHBOR",),
        read_resize,
        lambda op, graph: write_resize(
            op, "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"
        ),
    ),
    dtypes=frozenset(DType),
    onnx=OnnxBinding(("Resize", "Upsample"), read_onnx_resize),
    limits="any type, NHWC; the size is constant",
)
