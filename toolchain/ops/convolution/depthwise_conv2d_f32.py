"""Depthwise convolution in float32. TFLite DEPTHWISE_CONV_2D, `reference_ops::DepthwiseConv`."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution, window_of
from toolchain.ops.convolution.depthwise_conv2d_s8 import S8
from toolchain.ops.convolution.kernels import thimble_convolve_f32
from toolchain.ops.readers.float32 import (
    float32_form,
    with_bias_and_activation,
)


def _reference(op: kit.Operator[Convolution], inputs: kit.Inputs) -> kit.Arrays:
    x, y = op.input(kit.INPUT), op.y
    image = np.repeat(inputs[kit.INPUT].astype(np.float32), y.shape[3] // x.shape[3], axis=3)
    filters = inputs[kit.WEIGHTS].astype(np.float32)
    sums = np.zeros(y.shape, np.float32)
    for (row, column), seen in kit.image_patches(image, window_of(op), y.shape):
        sums = sums + seen * filters[0, row, column]
    return (with_bias_and_activation(sums, op, inputs, op.attributes.activation),)


F32 = float32_form(
    S8,
    "float32, constant weights; any stride, dilation, multiplier",
    _reference,
    thimble_convolve_f32.kernel,
)
