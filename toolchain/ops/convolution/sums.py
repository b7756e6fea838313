"""Sums of convolutions in NumPy, and what references make of them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.onnx_rounding import requantise_onnx
from toolchain.ops.convolution.common import (
    channel_requantisation,
    weight_zero_point,
    window_of,
)
from toolchain.ops.readers.float32 import with_bias_and_activation

Number = TypeVar("Number", np.float32, np.int64)


def window_sums(
    op: kit.AnyOperator, image: NDArray[Number], filters: NDArray[Number]
) -> NDArray[Number]:
    """Sums of filters [channels, height, width, depth], one product after the other. Filters are in
    groups where they read fewer channels than the image has.
    """
    y, (channels, _, _, depth) = op.y, filters.shape
    group = channels // (image.shape[3] // depth)
    first = np.arange(channels) // group * depth
    sums = np.zeros(y.shape, image.dtype)
    for (row, column), seen in kit.image_patches(image, window_of(op), y.shape):
        for index in range(depth):
            sums += seen[..., first + index] * filters[:, row, column, index]
    return sums


def transposed_sums(
    op: kit.Operator[Any], image: NDArray[Number], filters: NDArray[Number]
) -> NDArray[Number]:
    """Sums of a transposed convolution. Each input pixel in turn adds its channels, one after
    another, to what it reaches: an output gets the last taps of a filter first.
    """
    window, (out_h, out_w) = window_of(op), op.attributes.size
    (batches, height, width, depth), pad = image.shape, window.padding
    rows = max((height - 1) * window.stride[0] + window.kernel[0], pad.top + out_h)
    columns = max((width - 1) * window.stride[1] + window.kernel[1], pad.left + out_w)
    sums = np.zeros((batches, rows, columns, len(filters)), image.dtype)
    for row, column in reversed(list(np.ndindex(*window.kernel))):
        below = sums[:, row :: window.stride[0], column :: window.stride[1]]
        reached = below[:, :height, :width]
        for index in range(depth):
            reached += image[..., index, None] * filters[:, row, column, index]
    return sums[:, pad.top : pad.top + out_h, pad.left : pad.left + out_w]


def integer_sums(op: kit.AnyOperator, inputs: kit.Inputs) -> NDArray[np.int64]:
    """Sums of a conv2d of integers, or of a part of one, less the zero points."""
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    image = inputs[kit.INPUT].astype(np.float64) - x.q.zero_point
    channels, depth = y.shape[3], weights.shape[3]
    groups = x.shape[3] // depth
    filters = inputs[kit.WEIGHTS].astype(np.float64) - weight_zero_point(weights)
    filters = filters.reshape(groups, channels // groups, *weights.shape[1:])
    total = np.zeros((*y.shape[:3], groups, channels // groups))
    for (row, column), seen in kit.image_patches(image, window_of(op), y.shape):
        for group in range(groups):
            part = seen[..., group * depth : (group + 1) * depth]
            total[..., group, :] += part @ filters[group, :, row, column].T
    return total.reshape(y.shape).astype(np.int64)


def outputs_of(op: kit.Operator[Any], sums: NDArray[np.int64], inputs: kit.Inputs) -> kit.Arrays:
    """Sums of products plus the bias, if there is one, requantised and clamped as the operator's
    rounding and activation say.
    """
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    if kit.has_bias(op):
        sums = sums + inputs[kit.BIAS].astype(np.int64).reshape(-1)
    low, high = kit.clamp_range(op.attributes.activation, y)
    if op.attributes.rounding is kit.Rounding.ONNX:
        return (requantise_onnx(sums, x, weights, y, (low, high)),)
    multiplier, shift = channel_requantisation(x, weights, y, y.shape[3])
    return (kit.requantise(sums, multiplier, shift, y, low, high),)


def float_reference(op: kit.Operator[Any], inputs: kit.Inputs) -> kit.Arrays:
    """The float32 reference of conv2d, depthwise_conv2d and transpose_conv2d."""
    image, filters = (inputs[i].astype(np.float32) for i in (kit.INPUT, kit.WEIGHTS))
    if op.kind == "depthwise_conv2d":
        filters = filters.transpose(3, 1, 2, 0)
    summed = transposed_sums if op.kind == "transpose_conv2d" else window_sums
    sums = summed(op, image, filters)
    return (with_bias_and_activation(sums, op, inputs, op.attributes.activation),)
