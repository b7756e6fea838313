"""2-D convolution in float32. TFLite CONV_2D, `reference_ops::Conv`."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution, window_of
from toolchain.ops.convolution.conv2d_s8 import S8
from toolchain.ops.convolution.kernels import thimble_convolve_f32
from toolchain.ops.readers.float32 import (
    float32_form,
    with_bias_and_activation,
)


def _reference(op: kit.Operator[Convolution], inputs: kit.Inputs) -> kit.Arrays:
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    channels, depth = weights.shape[0], weights.shape[3]
    group = channels // (x.shape[3] // depth)
    filters = inputs[kit.WEIGHTS].astype(np.float32)
    image = inputs[kit.INPUT].astype(np.float32)
    sums = np.zeros(y.shape, np.float32)
    first = np.arange(channels) // group * depth
    for (row, column), seen in kit.image_patches(image, window_of(op), y.shape):
        for index in range(depth):
            sums = sums + seen[..., first + index] * filters[:, row, column, index]
    return (with_bias_and_activation(sums, op, inputs, op.attributes.activation),)


F32 = float32_form(
    S8,
    "float32, constant weights; any stride, dilation, groups",
    _reference,
    thimble_convolve_f32.kernel,
)
