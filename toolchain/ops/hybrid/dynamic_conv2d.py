"""2-D convolution of a float image with int8 filters, as ONNX quantises dynamically.

DynamicQuantizeLinear, ConvInteger, Cast and Mul: all images are quantised together, as uint8, and
an int32 sum is multiplied by the product of both scales.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.conv2d_s8 import S8
from toolchain.ops.hybrid.convolutions import HybridConvolution, hybrid_conv2d
from toolchain.ops.hybrid.dynamic import LIMITS, OPERANDS, dynamic_sample, dynamic_weights
from toolchain.ops.readers.onnx import image_axes, image_shape, onnx_bias, window


def _read_onnx(node: kit.OnnxNode) -> None:
    """ConvInteger, one- or two-dimensional; depthwise where every group has one input channel."""
    if not node.in_float:
        raise node.left_in_float("it computes on floats")
    axes, channels_in = image_axes(node), node.shape(kit.INPUT)[1]
    weights = dynamic_weights(node, 0)
    walk = window(node, weights.data.shape[2:])
    filters = weights.data.reshape(*weights.data.shape[:2], *walk.kernel).transpose(0, 2, 3, 1)
    groups, channels = int(node.attribute("group", 1)), len(filters)
    if filters.shape[3] * groups != channels_in:
        raise ValueError(f"{groups} groups of {filters.shape[3]} of {channels_in} channels")
    bias = onnx_bias(node, OPERANDS, channels, axis=1)
    activation = kit.Activation(node.fused_activation())
    walked = (
        walk.stride,
        walk.dilation,
        kit.Padding(*walk.begin, *walk.end),
        activation,
        Range.ONNX,
    )
    depthwise = groups > 1 and filters.shape[3] == 1 and len(set(weights.zero_points)) == 1
    if depthwise:
        filters, weights = filters.transpose(3, 1, 2, 0), weights.for_each(channels)
    stored = weights.quantisation(3 if depthwise else 0)
    inputs = [
        node.operand(kit.INPUT, axes, image_shape(node.shape(kit.INPUT))),
        node.add_constant("weights", filters, stored),
    ]
    if bias is not None:
        inputs.append(node.add_constant("bias", bias.astype(np.float32), None))
    shape = image_shape(node.output_shape())
    kind = "dynamic_depthwise_conv2d" if depthwise else "dynamic_conv2d"
    node.emit(kind, HybridConvolution(*walked), inputs, node.output_quantisation(), axes, shape)


def _attributes(op: kit.Op, rng: np.random.Generator) -> kit.Attributes:
    return HybridConvolution.of(op, Range.ONNX)


SPEC = replace(
    hybrid_conv2d(S8),
    kind="dynamic_conv2d",
    sample=dynamic_sample(S8, "dynamic_conv2d", 0, _attributes),
    tflite=None,
    onnx=kit.OnnxBinding(("ConvInteger",), _read_onnx),
    dtype=kit.DType.FLOAT32,
    weights=None,
    name="",
    limits=f"{LIMITS}; any stride, dilation, groups",
)
