"""2-D convolution of a float image with int8 filters, as ONNX quantises dynamically.

DynamicQuantizeLinear, ConvInteger, Cast and Mul: all images are quantised together, as uint8, and
an int32 sum is multiplied by the product of both scales.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.conv2d_s8 import S8
from toolchain.ops.hybrid.convolutions import HybridConvolution, hybrid_conv2d
from toolchain.ops.hybrid.dynamic import (
    LIMITS,
    OPERANDS,
    dynamic_form,
    dynamic_sample,
    dynamic_weights,
)
from toolchain.ops.readers.onnx import grouped_filters, image_axes, image_shape, onnx_bias


def _read_onnx(node: kit.OnnxNode) -> None:
    """ConvInteger, one- or two-dimensional; depthwise where every group has one input channel."""
    if not node.in_float:
        raise node.left_in_float("it computes on floats")
    axes, weights = image_axes(node), dynamic_weights(node, 0)
    walk, filters, groups = grouped_filters(node, weights.data)
    channels = len(filters)
    bias = onnx_bias(node, OPERANDS, channels, axis=1)
    activation, padding = (
        kit.Activation(node.fused_activation()),
        kit.Padding(*walk.begin, *walk.end),
    )
    attributes = HybridConvolution(walk.stride, walk.dilation, padding, activation, Range.ONNX)
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
    node.emit(kind, attributes, inputs, node.output_quantisation(), axes, shape)


SPEC = dynamic_form(
    hybrid_conv2d(S8),
    kind="dynamic_conv2d",
    sample=dynamic_sample(S8, "dynamic_conv2d", 0, HybridConvolution.of_onnx),
    onnx=kit.OnnxBinding(("ConvInteger",), _read_onnx),
    limits=f"{LIMITS}; any stride, dilation, groups",
)
