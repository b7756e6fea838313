"""2-D convolution of int8, per-channel or per-tensor weights. TFLite CONV_2D, ONNX Conv.

The convolution is grouped if the weights have fewer input channels than the image. Arithmetic:
TFLite `reference_integer_ops::ConvPerChannel`; for ONNX models one rounding in float32
(`arithmetic.onnx_rounding`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution import cmsis_nn, common
from toolchain.ops.convolution.common import Convolution, Windowed
from toolchain.ops.convolution.conv2d_choice import own_conv2d, select_conv2d
from toolchain.ops.convolution.depthwise_conv2d_s8 import DepthwiseConv2D
from toolchain.ops.convolution.kernels.thimble_convolve_winograd_s8 import winograd_forms
from toolchain.ops.convolution.reductions import convolution_reductions
from toolchain.ops.convolution.sums import integer_sums, outputs_of
from toolchain.ops.readers.onnx import (
    add_bias,
    grouped_filters,
    image_axes,
    image_shape,
    onnx_bias,
    stored_weights,
)


@dataclass(frozen=True)
class Conv2D(Convolution):
    """Attributes of conv2d. The number of groups follows from the weights' shape."""


def _infer(op: kit.Operator[Windowed]) -> kit.TensorTypes:
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    if len(x.shape) != 4 or len(weights.shape) != 4:
        raise ValueError(f"needs NHWC input and OHWI weights, got {x.shape} and {weights.shape}")
    batches, height, width, depth = x.shape
    channels, _, _, group_depth = weights.shape
    if group_depth < 1 or depth % group_depth or channels % (depth // group_depth):
        raise ValueError(
            f"{depth} input channels and {channels} filters of depth {group_depth} form no groups"
        )
    common.check_bias(op, channels)
    out_h, out_w = common.window_of(op).output_size(height, width)
    return (kit.TensorType((batches, out_h, out_w, channels), x.dtype),)


def _reference(op: kit.Operator[Convolution], inputs: kit.Inputs) -> kit.Arrays:
    return outputs_of(op, integer_sums(op, inputs), inputs)


def _axes(op: kit.Operator[Convolution]) -> tuple[kit.Axis, ...]:
    """Rows, columns, and, without groups, output channels: each has filters of its own."""
    attributes = op.attributes
    image = kit.window_axes(op, common.window_of(op), lambda pad: replace(attributes, padding=pad))
    if op.input(kit.WEIGHTS).shape[3] != op.input(kit.INPUT).shape[3]:
        return image
    filters = (kit.Reach(0),) * (len(op.inputs) - 1)
    return (*image, kit.Axis(3, (None, *filters), lambda part: attributes))


def _select(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    return _with_forms(select_conv2d(op, core), op, core)


def _own(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    return _with_forms(own_conv2d(op, core), op, core)


def _with_forms(kernel: kit.Kernel, op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """Helium's vectors are quicker than Winograd's algorithm, which has no kernel for them."""
    return kernel if core.mve else replace(kernel, more_flash=lambda: winograd_forms(op))


def _reductions(op: kit.Operator[Convolution]) -> tuple[kit.Reduction, ...]:
    attributes, window = op.attributes, common.window_of(op)
    return convolution_reductions(op, window, attributes.activation, attributes.rounding)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    return common.read_convolution(node, Conv2D)


def _write(op: kit.Operator[Convolution]) -> kit.WrittenOp:
    return common.write_convolution(op, "CONV_2D", "Conv2DOptions")


def _sample(rng: np.random.Generator) -> kit.Graph:
    pointwise = rng.random() < 0.3
    kernel = (1, 1) if pointwise else (int(rng.integers(1, 6)), int(rng.integers(1, 5)))
    stride = (1, 1) if rng.random() < 0.5 else (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    dilated = stride == (1, 1) and rng.random() < 0.3
    dilation = (int(rng.integers(1, 4)), int(rng.integers(1, 4))) if dilated else (1, 1)
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    group_depth, group_channels = int(rng.integers(1, 20)), int(rng.integers(1, 10))
    size, window = common.random_window(rng, kit.Window(kernel, stride, dilation), 8)
    channels, depth = groups * group_channels, groups * group_depth
    w_shape, taps = (channels, *kernel, group_depth), kernel[0] * kernel[1] * group_depth
    # LiteRT refuses CONV_2D without a bias.
    operands, y_q = common.random_operands(rng, (1, *size, depth), w_shape, taps)
    attributes = Conv2D(stride, dilation, window.padding, kit.sample_activation(rng))
    return kit.sample("conv2d", attributes, *operands, q=y_q, name="conv")


def _read_onnx(node: kit.OnnxNode) -> None:
    """Conv, one- or two-dimensional; depthwise where every group has one input channel."""
    axes, weights = image_axes(node), stored_weights(node, kit.WEIGHTS, axis=0)
    walk, filters, groups = grouped_filters(node, weights.data)
    bias = onnx_bias(node, kit.BIAS, len(filters), axis=1)
    q = node.output_quantisation()
    padding = kit.Padding(*walk.begin, *walk.end)
    activation = kit.Activation(node.fused_activation())
    depthwise = groups > 1 and filters.shape[3] == 1
    if depthwise:
        filters = filters.transpose(3, 1, 2, 0)
    inputs = [
        node.operand(kit.INPUT, axes, image_shape(node.shape(0))),
        node.add_constant("weights", filters, weights.quantisation(3 if depthwise else 0)),
    ]
    if bias is not None:
        inputs.append(add_bias(node, bias, node.quantisation(kit.INPUT).scale, weights))
    chosen = DepthwiseConv2D if depthwise else Conv2D
    attributes = chosen(walk.stride, walk.dilation, padding, activation, kit.Rounding.ONNX)
    kind = "depthwise_conv2d" if depthwise else "conv2d"
    node.emit(kind, attributes, inputs, q, axes, image_shape(node.output_shape()))


S8 = kit.Form(
    quantised=kit.WEIGHTED,
    kind="conv2d",
    attributes=Conv2D,
    infer=_infer,
    reference=_reference,
    select=kit.Choice(_select, cmsis_nn.conv2d, _own),
    sample=_sample,
    macs=common.filter_macs,
    axes=_axes,
    reductions=_reductions,
    tflite=kit.TfliteBinding(("CONV_2D",), _read, _write),
    onnx=kit.OnnxBinding(("Conv",), _read_onnx),
    dtype=kit.DType.INT8,
    limits="int8 or legacy uint8; constant weights, int4 too; any stride, dilation, groups",
)
