"""Depthwise convolution of int8: each input channel has `multiplier` filters of its own.

TFLite DEPTHWISE_CONV_2D; weights [1, height, width, channels], quantised per channel or per tensor.
Arithmetic: TFLite `reference_integer_ops::DepthwiseConvPerChannel`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution import cmsis_nn, common
from toolchain.ops.convolution.common import Convolution, Windowed
from toolchain.ops.convolution.depthwise_choice import own_depthwise, select_depthwise
from toolchain.ops.convolution.sums import outputs_of, window_sums


@dataclass(frozen=True)
class DepthwiseConv2D(Convolution):
    """Attributes of depthwise_conv2d. Output channel c reads input channel c // multiplier."""


def _infer(op: kit.Operator[Windowed]) -> kit.TensorTypes:
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    if len(x.shape) != 4 or len(weights.shape) != 4 or weights.shape[0] != 1:
        raise ValueError(f"needs NHWC input and 1HWC weights, got {x.shape} and {weights.shape}")
    batches, height, width, depth = x.shape
    channels = weights.shape[3]
    if channels % depth:
        raise ValueError(f"{channels} filters are no multiple of {depth} input channels")
    common.check_bias(op, channels)
    out_h, out_w = common.window_of(op).output_size(height, width)
    return (kit.TensorType((batches, out_h, out_w, channels), x.dtype),)


def _reference(op: kit.Operator[Convolution], inputs: kit.Inputs) -> kit.Arrays:
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    image = inputs[kit.INPUT].astype(np.int64) - x.q.zero_point
    filters = inputs[kit.WEIGHTS].astype(np.int64) - common.weight_zero_point(weights)
    return outputs_of(op, window_sums(op, image, filters.transpose(3, 1, 2, 0)), inputs)


def _macs(op: kit.AnyOperator) -> int:
    _, height, width, _ = op.input(kit.WEIGHTS).shape
    return op.y.elements * height * width


def _axes(op: kit.Operator[Convolution]) -> tuple[kit.Axis, ...]:
    """Rows, columns, and channels where each has one filter."""
    attributes = op.attributes
    image = kit.window_axes(op, common.window_of(op), lambda pad: replace(attributes, padding=pad))
    if op.input(kit.WEIGHTS).shape[3] != op.input(kit.INPUT).shape[3]:
        return image
    reaches = (kit.Reach(3), kit.Reach(3), kit.Reach(0))[: len(op.inputs)]
    return (*image, kit.Axis(3, reaches, lambda part: attributes))


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    return common.read_convolution(node, DepthwiseConv2D)


def _write(op: kit.Operator[Convolution]) -> kit.WrittenOp:
    multiplier = op.input(kit.WEIGHTS).shape[3] // op.input(kit.INPUT).shape[3]
    options = "DepthwiseConv2DOptions"
    return common.write_convolution(op, "DEPTHWISE_CONV_2D", options, depthMultiplier=multiplier)


def _sample(rng: np.random.Generator) -> kit.Graph:
    usual = rng.random() < 0.5
    kernel = (3, 3) if usual else (int(rng.integers(1, 8)), int(rng.integers(1, 8)))
    stride = int(rng.integers(1, 4))
    dilated = stride == 1 and rng.random() < 0.3
    dilation = (int(rng.integers(1, 4)), int(rng.integers(1, 4))) if dilated else (1, 1)
    multiplier, depth = int(rng.choice([1, 1, 1, 2, 4])), int(rng.integers(1, 14))
    strides = (stride, stride)
    size, window = common.random_window(rng, kit.Window(kernel, strides, dilation), 9)
    channels = depth * multiplier
    shapes = (1, *size, depth), (1, *kernel, channels)
    taps = kernel[0] * kernel[1]
    operands, y_q = common.random_operands(rng, *shapes, taps, biased=0.8, axis=3)
    attributes = DepthwiseConv2D(strides, dilation, window.padding, kit.sample_activation(rng))
    return kit.sample("depthwise_conv2d", attributes, *operands, q=y_q, name="depthwise")


S8 = kit.Form(
    quantised=kit.WEIGHTED,
    kind="depthwise_conv2d",
    attributes=DepthwiseConv2D,
    infer=_infer,
    reference=_reference,
    select=kit.Choice(select_depthwise, cmsis_nn.depthwise, own_depthwise),
    sample=_sample,
    macs=_macs,
    axes=_axes,
    tflite=kit.TfliteBinding(("DEPTHWISE_CONV_2D",), _read, _write),
    dtype=kit.DType.INT8,
    limits="int8 or legacy uint8; constant weights, int4 too; any stride and dilation",
)
