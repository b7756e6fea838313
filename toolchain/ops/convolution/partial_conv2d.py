"""int32 sums of a convolution over some of its input channels or kernel rows.

A convolution that is split along what it sums over becomes a chain of these, each of which adds to
the sums of the one before; `requantise_sums` then makes int8 of the last. Inputs: int8 image, OHWI
weights of this part, bias or '', int32 sums to add to or ''. Sums wrap as two's complement, so the
order of the parts does not matter. Sources: SERENITY (MLSys 2020), section 3.3, channel-wise
partition; MOTES, section 4.3, reduced axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution import common
from toolchain.ops.convolution.common import Windowed
from toolchain.ops.convolution.kernels import (
    partial_sums,
    thimble_partial_conv_1x1_s8,
    thimble_partial_conv_lanes_s8,
    thimble_partial_conv_s8,
)


@dataclass(frozen=True)
class PartialConv2D(Windowed):
    """Attributes of partial_conv2d, which has no groups."""


def is_pointwise(window: kit.Window) -> bool:
    """Whether each output pixel depends on the input pixel at the same place alone."""
    return window.kernel == window.stride == (1, 1) and window.padding == kit.UNPADDED


def _infer(op: kit.Operator[Windowed]) -> kit.TensorTypes:
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    if len(x.shape) != 4 or len(weights.shape) != 4 or weights.shape[3] != x.shape[3]:
        raise ValueError(f"needs NHWC input and OHWI weights, got {x.shape} and {weights.shape}")
    if len(op.inputs) != partial_sums.SUMS + 1:
        raise ValueError("needs an image, weights, a bias or none, and sums or none")
    size = common.window_of(op).output_size(x.shape[1], x.shape[2])
    shape = (x.shape[0], *size, weights.shape[0])
    common.check_bias(op, shape[3])
    if op.inputs[partial_sums.SUMS] is not None:
        sums = op.input(partial_sums.SUMS)
        if (sums.shape, sums.dtype) != (shape, kit.DType.INT32):
            raise ValueError(f"{sums} cannot be added to int32{list(shape)}")
    return (kit.TensorType(shape, kit.DType.INT32),)


def _reference(op: kit.Operator[Windowed], inputs: kit.Inputs) -> kit.Arrays:
    image = inputs[kit.INPUT].astype(np.int64) - op.input(kit.INPUT).q.zero_point
    filters = inputs[kit.WEIGHTS].astype(np.int64)
    total = np.zeros(op.y.shape, dtype=np.int64)
    for (row, column), seen in kit.image_patches(image, common.window_of(op), op.y.shape):
        total += seen @ filters[:, row, column].T
    if op.inputs[kit.BIAS] is not None:
        total = total + inputs[kit.BIAS].astype(np.int64).reshape(-1)
    if op.inputs[partial_sums.SUMS] is not None:
        total = total + inputs[partial_sums.SUMS].astype(np.int64)
    return (kit.wrap_int32(total).astype(np.int32),)


def _select(op: kit.Operator[Windowed], core: kit.Core) -> kit.Kernel:
    window = common.window_of(op)
    if core.mve:
        return thimble_partial_conv_lanes_s8.kernel(op, window)
    if is_pointwise(window) and op.input(kit.INPUT).shape[3] % 4 == 0:
        return thimble_partial_conv_1x1_s8.kernel(op, window)
    return thimble_partial_conv_s8.kernel(op, window)


def _macs(op: kit.AnyOperator) -> int:
    _, height, width, depth = op.input(kit.WEIGHTS).shape
    return op.y.elements * height * width * depth


def _sample(rng: np.random.Generator) -> kit.Graph:
    kernel = (int(rng.integers(1, 5)), int(rng.integers(1, 4)))
    stride = (int(rng.integers(1, 4)), int(rng.integers(1, 3)))
    dilation = (1, 2) if stride == (1, 1) else (1, 1)
    size, window = common.random_window(rng, kit.Window(kernel, stride, dilation), 6)
    channels, depth = int(rng.integers(1, 9)), int(rng.integers(1, 14))
    x_q, w_q, _ = common.random_quantisation(rng, channels, kernel[0] * kernel[1] * depth)
    w_shape = (channels, *kernel, depth)
    y_shape = (1, *window.output_size(*size), channels)
    weights = rng.integers(-127, 128, w_shape).astype(np.int8)
    x = kit.Tensor("x", (1, *size, depth), kit.DType.INT8, x_q)
    filters = kit.constant_sample("weights", weights, w_q)
    bias = common.random_bias(rng, x_q, w_q, channels) if rng.random() < 0.5 else None
    sums = kit.Tensor("sums", y_shape, kit.DType.INT32) if rng.random() < 0.7 else None
    attributes = PartialConv2D(stride, dilation, window.padding)
    return kit.sample("partial_conv2d", attributes, x, filters, bias, sums, name="partial")


SPEC = kit.Form(
    quantised=kit.WEIGHTED,
    kind="partial_conv2d",
    attributes=PartialConv2D,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    macs=_macs,
    types=frozenset({kit.DType.INT8, kit.DType.INT32}),
    made_by_passes=True,
    limits="int8 image, int32 sums; made by rewriting only",
)
