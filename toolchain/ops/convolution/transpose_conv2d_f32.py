"""Transposed convolution in float32. TFLite TRANSPOSE_CONV, `reference_ops::TransposeConv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.convolution import transpose_conv2d
from toolchain.ops.convolution.common import INPUT, WEIGHTS, Window
from toolchain.ops.convolution.transpose_conv2d import TransposeConv2D
from toolchain.ops.readers.floats import FLOAT, finished, float_sample, no_overlaps, window_fields
from toolchain.ops.spec import Array, Lowering, no_reductions


def _attributes(op: Op) -> TransposeConv2D:
    assert isinstance(op.attributes, TransposeConv2D)
    return op.attributes


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Each input pixel in turn adds its channels, one after another, to what it reaches."""
    attributes, y = _attributes(op), graph.output(op)
    image, filters = (inputs[i].astype(np.float32) for i in (INPUT, WEIGHTS))
    _, height, width, depth = image.shape
    _, kernel_h, kernel_w, _ = filters.shape
    sums = np.zeros(y.shape, np.float32)
    for row in range(height):
        for column in range(width):
            top = row * attributes.stride[0] - attributes.padding.top
            left = column * attributes.stride[1] - attributes.padding.left
            rows = range(max(0, -top), min(kernel_h, y.shape[1] - top))
            columns = range(max(0, -left), min(kernel_w, y.shape[2] - left))
            for ky, kx in ((ky, kx) for ky in rows for kx in columns):
                total = sums[:, top + ky, left + kx]
                for index in range(depth):
                    total = total + image[:, row, column, index, None] * filters[:, ky, kx, index]
                sums[:, top + ky, left + kx] = total
    return (finished(sums, op, inputs, attributes.activation),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    attributes, (_, height, width, depth) = _attributes(op), graph.input(op, WEIGHTS).shape
    window = Window((height, width), attributes.stride, (1, 1), attributes.padding)
    fields = window_fields(op, graph, window, attributes.activation, depth)
    return Lowering(functions=("thimble_transpose_conv_f32",), fields=fields)


SPEC = replace(
    transpose_conv2d.SPEC,
    kind="transpose_conv2d_f32",
    reference=_reference,
    lower=_lower,
    extents=product_extents.window_f32("ordinary"),
    overlaps=no_overlaps,
    sample=float_sample(transpose_conv2d.SPEC.sample, "transpose_conv2d_f32"),
    onnx=None,
    reductions=no_reductions,
    dtypes=FLOAT,
    limits="float32, constant weights; any stride and output size",
)
