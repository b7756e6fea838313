"""TRANSPOSE_CONV of a float image with int8 filters: LiteRT's `HybridTransposeConv`.

Each image is quantised whole, with a zero point. Every product is scaled by itself, and added in
float32 in the order of input pixels and their channels. One scale of all filters is each filter's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.common import window_of
from toolchain.ops.convolution.transpose_conv2d_s8 import (
    FILE_ORDER,
    TransposeConv2D,
    read_transposed,
)
from toolchain.ops.convolution.window_f32 import window_f32
from toolchain.ops.hybrid.kernels import transposed_kernel
from toolchain.ops.hybrid.sums import (
    centred,
    check_hybrid_node,
    hybrid_form,
    hybrid_sample,
    real_weights,
    with_bias,
)


def _reference(op: kit.Operator[TransposeConv2D], inputs: kit.Inputs) -> kit.Arrays:
    attributes, y, weights = op.attributes, op.y, op.input(kit.WEIGHTS)
    image, steps = centred(inputs[kit.INPUT].astype(np.float32), Range.ASYMMETRIC)
    filters = real_weights(op, inputs[kit.WEIGHTS])
    _, height, width, depth = image.shape
    channels, kernel_h, kernel_w, _ = weights.shape
    scales = np.broadcast_to(np.array(weights.q.scales, np.float32), channels)
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
                    products = image[:, row, column, index, None] * filters[:, ky, kx, index]
                    total = total + products.astype(np.float32) * scales * steps[:, None]
                sums[:, top + ky, left + kx] = total
    return (with_bias(sums, op, inputs, attributes.activation),)


def _select(op: kit.Operator[TransposeConv2D], core: kit.Core) -> kit.Kernel:
    depth, activation = op.input(kit.WEIGHTS).shape[3], op.attributes.activation
    shapes = op.input(kit.INPUT).shape, op.y.shape
    return transposed_kernel(op, window_f32(*shapes, window_of(op), activation, depth))


def _axes(op: kit.Operator[TransposeConv2D]) -> tuple[kit.Axis, ...]:
    """Output channels: each has filters of its own."""
    filters = tuple(None if x is None else kit.Reach(0) for x in op.inputs[kit.WEIGHTS :])
    return (kit.Axis(3, (None, *filters), lambda part: op.attributes),)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_hybrid_node(node, 4, 0, FILE_ORDER)
    return read_transposed(node)


def hybrid_transposed(plain: kit.Form[Any]) -> kit.Form[Any]:
    """The form of a float `transpose_conv2d` whose filters are int8."""

    def attributes(op: kit.Op, rng: np.random.Generator) -> kit.Attributes:
        return op.attributes

    assert plain.tflite is not None
    return hybrid_form(
        plain,
        reference=_reference,
        select=_select,
        sample=hybrid_sample(
            plain.sample, 0, attributes, per_channel=lambda rng: rng.random() < 0.6
        ),
        axes=_axes,
        tflite=replace(plain.tflite, read=_read),
    )
