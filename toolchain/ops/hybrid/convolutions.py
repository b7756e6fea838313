"""CONV_2D and DEPTHWISE_CONV_2D of a float image with int8 filters.

Each image is quantised whole, so that no part of it can be computed without the rest. Arithmetic:
LiteRT's `HybridConvPerChannel` and `DepthwiseConvHybridPerChannel`, which choose a zero point;
where all filters of a CONV_2D without groups have one scale, `HybridConv`, which does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Int64, Range
from toolchain.ops.convolution.common import (
    Convolution,
    Windowed,
    read_padding,
    window_of,
    write_window,
)
from toolchain.ops.convolution.window_f32 import window_f32
from toolchain.ops.hybrid.kernels import convolution_kernel, depthwise_kernel
from toolchain.ops.hybrid.sums import (
    centred,
    check_hybrid_node,
    hybrid_sample,
    in_float32,
    real_weights,
    with_bias,
)


@dataclass(frozen=True)
class HybridConvolution(Windowed):
    """`range`: how the image is quantised; never SYMMETRIC before a depthwise convolution."""

    activation: kit.Activation = kit.Activation.NONE
    range: Range = Range.ASYMMETRIC

    @classmethod
    def of(cls, op: kit.Op, chosen: Range = Range.ASYMMETRIC) -> HybridConvolution:
        """The attributes of a convolution, with another range."""
        a = op.attributes
        assert isinstance(a, Convolution)
        return cls(a.stride, a.dilation, a.padding, a.activation, chosen)


def _sums(op: kit.Operator[Windowed], image: Int64, filters: Int64) -> Int64:
    """int64 sums of filters [channels, height, width, depth]."""
    y = op.y
    channels, _, _, depth = filters.shape
    group = channels // (image.shape[3] // depth)
    first = np.arange(channels) // group * depth
    sums = np.zeros(y.shape, np.int64)
    for (row, column), seen in kit.image_patches(image, window_of(op), y.shape):
        for index in range(depth):
            sums += seen[..., first + index] * filters[:, row, column, index]
    return sums


def _result(
    op: kit.Operator[HybridConvolution],
    inputs: kit.Inputs,
    filters: Int64,
    *,
    in_turn: bool,
) -> kit.Arrays:
    """A sum is multiplied by its filter's scale and then by the image's where `in_turn`, else by
    their product.
    """
    image, steps = centred(inputs[kit.INPUT].astype(np.float32), op.attributes.range)
    sums = in_float32(_sums(op, image, filters))
    scales = np.array(op.input(kit.WEIGHTS).q.scales, np.float32)
    image_scales = steps.reshape(-1, 1, 1, 1)
    scaled = sums * scales * image_scales if in_turn else sums * (scales * image_scales)
    return (with_bias(scaled, op, inputs, op.attributes.activation),)


def _in_turn(op: kit.Operator[HybridConvolution]) -> bool:
    return op.attributes.range is Range.ASYMMETRIC


def _reference(op: kit.Operator[HybridConvolution], inputs: kit.Inputs) -> kit.Arrays:
    filters = real_weights(op, inputs[kit.WEIGHTS])
    return _result(op, inputs, filters, in_turn=_in_turn(op))


def _select(op: kit.Operator[HybridConvolution], core: kit.Core) -> kit.Kernel:
    a, x, depth = op.attributes, op.input(kit.INPUT), op.input(kit.WEIGHTS).shape[3]
    window = window_f32(x.shape, op.y.shape, window_of(op), a.activation, depth)
    groups = x.shape[3] // depth
    return convolution_kernel(op, core, window, a.range, in_turn=_in_turn(op), groups=groups)


def _axes(op: kit.AnyOperator) -> tuple[kit.Axis, ...]:
    """Without groups, output channels: each has filters of its own."""
    if op.input(kit.WEIGHTS).shape[3] != op.input(kit.INPUT).shape[3]:
        return ()
    filters = (kit.Reach(0),) * (len(op.inputs) - 1)
    return (kit.Axis(3, (None, *filters), lambda part: op.attributes),)


def _read_window(node: kit.TfliteNode, axis: int) -> Windowed:
    check_hybrid_node(node, 4, axis)
    x, weights, options = node.inputs[kit.INPUT], node.inputs[kit.WEIGHTS], node.options
    assert x is not None and weights is not None
    if len(x.shape) != 4:
        raise node.unsupported(f"input of shape {list(x.shape)}")
    kernel = (weights.shape[1], weights.shape[2])
    stride = (int(options.strideH), int(options.strideW))
    dilation = (int(options.dilationHFactor), int(options.dilationWFactor))
    size = (x.shape[1], x.shape[2])
    return Windowed(stride, dilation, read_padding(node, size, kernel, stride, dilation))


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    walk = _read_window(node, 0)
    x, weights = node.inputs[kit.INPUT], node.inputs[kit.WEIGHTS]
    assert x is not None and weights is not None
    if len(weights.q.scales) != weights.shape[0]:
        raise node.unsupported("filters without a scale of each", "convert the model again")
    activation = kit.read_activation(node)
    walked = (walk.stride, walk.dilation, walk.padding)
    chosen = _range_of(x, weights)
    return kit.ReadOp(HybridConvolution(*walked, activation, chosen), kit.present_inputs(node))


def _range_of(x: kit.Tensor, weights: kit.Tensor) -> Range:
    """LiteRT's: with a zero point where filters have scales of their own, or in groups."""
    alike = len(set(weights.q.scales)) == 1 and x.shape[3] == weights.shape[3]
    return Range.SYMMETRIC if alike else Range.ASYMMETRIC


def _write(op: kit.Operator[HybridConvolution]) -> kit.WrittenOp:
    return write_window(op, op.attributes.activation, "CONV_2D", "Conv2DOptions", version=5)


def _depthwise_reference(op: kit.Operator[HybridConvolution], inputs: kit.Inputs) -> kit.Arrays:
    filters = real_weights(op, inputs[kit.WEIGHTS]).transpose(3, 1, 2, 0)
    return _result(op, inputs, filters, in_turn=False)


def _depthwise_select(op: kit.Operator[HybridConvolution], core: kit.Core) -> kit.Kernel:
    shapes = op.input(kit.INPUT).shape, op.y.shape
    window = window_f32(*shapes, window_of(op), op.attributes.activation, 1)
    return depthwise_kernel(op, window, op.attributes.range)


def _depthwise_read(node: kit.TfliteNode) -> kit.ReadOp:
    walk = _read_window(node, 3)
    weights = node.inputs[kit.WEIGHTS]
    assert weights is not None
    if len(weights.q.scales) != weights.shape[3]:
        raise node.unsupported(
            "filters without a scale of each, beyond which LiteRT reads", "convert the model again"
        )
    walked = (walk.stride, walk.dilation, walk.padding)
    return kit.ReadOp(
        HybridConvolution(*walked, kit.read_activation(node)), kit.present_inputs(node)
    )


def _depthwise_write(op: kit.Operator[HybridConvolution]) -> kit.WrittenOp:
    multiplier = op.y.shape[3] // op.input(kit.INPUT).shape[3]
    builtin = "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"
    chosen = op.attributes.activation
    return write_window(op, chosen, *builtin, version=6, depthMultiplier=multiplier)


def hybrid_conv2d(plain: kit.Form[Any]) -> kit.Form[Any]:
    """The form of a float `conv2d` whose filters are int8."""

    def attributes(op: kit.Op, rng: np.random.Generator) -> HybridConvolution:
        return HybridConvolution.of(op)

    def sample(rng: np.random.Generator) -> kit.Graph:
        graph = hybrid_sample(plain.sample, 0, attributes)(rng)
        (op,), x, weights = graph.ops, graph.tensors["x"], graph.tensors["weights"]
        if rng.random() < 0.2:
            alike = (weights.q.scales[0],) * len(weights.q.scales)
            weights = replace(weights, quantisation=replace(weights.q, scales=alike))
        assert isinstance(op.attributes, HybridConvolution)
        chosen = replace(op, attributes=replace(op.attributes, range=_range_of(x, weights)))
        graph = kit.with_tensors(graph, lambda t: weights if t.name == "weights" else t)
        return replace(graph, ops=(chosen,))

    return replace(
        plain,
        attributes=HybridConvolution,
        reference=_reference,
        select=_select,
        sample=sample,
        axes=_axes,
        reductions=kit.no_reductions,
        tflite=kit.TfliteBinding(("CONV_2D",), _read, _write),
        weights=kit.DType.INT8,
        name="hybrid",
        limits="float32 with constant int8 weights, as LiteRT's hybrid kernels",
    )


def hybrid_depthwise(plain: kit.Form[Any]) -> kit.Form[Any]:
    """The form of a float `depthwise_conv2d` whose filters are int8."""

    def attributes(op: kit.Op, rng: np.random.Generator) -> HybridConvolution:
        return HybridConvolution.of(op)

    return replace(
        plain,
        attributes=HybridConvolution,
        reference=_depthwise_reference,
        select=_depthwise_select,
        sample=hybrid_sample(plain.sample, 3, attributes),
        axes=lambda op: (),
        reductions=kit.no_reductions,
        tflite=kit.TfliteBinding(("DEPTHWISE_CONV_2D",), _depthwise_read, _depthwise_write),
        weights=kit.DType.INT8,
        name="hybrid",
        limits="float32 with constant int8 weights, as LiteRT's hybrid kernels",
    )
