"""Transposed convolution in float32. TFLite TRANSPOSE_CONV, `reference_ops::TransposeConv`."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution.kernels import thimble_convolve_f32
from toolchain.ops.convolution.transpose_conv2d_s8 import S8, TransposeConv2D
from toolchain.ops.readers.float32 import float32_form, with_bias_and_activation


def _reference(op: kit.Operator[TransposeConv2D], inputs: kit.Inputs) -> kit.Arrays:
    """Each input pixel in turn adds its channels, one after another, to what it reaches."""
    attributes, y = op.attributes, op.y
    image, filters = (inputs[i].astype(np.float32) for i in (kit.INPUT, kit.WEIGHTS))
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
    return (with_bias_and_activation(sums, op, inputs, attributes.activation),)


F32 = float32_form(
    S8,
    "float32, constant weights; any stride and output size",
    _reference,
    thimble_convolve_f32.kernel,
)
