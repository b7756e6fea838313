"""CONV_2D and DEPTHWISE_CONV_2D of a float image with int8 filters.

Each image is quantised whole, so that no part of it can be computed without the rest. Arithmetic:
LiteRT's `HybridConvPerChannel` and `DepthwiseConvHybridPerChannel`, which choose a zero point;
where all filters of a CONV_2D without groups have one scale, `HybridConv`, which does not. One
scale of all depthwise filters is each filter's; LiteRT reads beyond it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.common import (
    Convolution,
    Windowed,
    read_walk,
    window_of,
    write_window,
)
from toolchain.ops.convolution.sums import window_sums
from toolchain.ops.convolution.window_f32 import window_f32
from toolchain.ops.hybrid.kernels import convolution_kernel, depthwise_kernel
from toolchain.ops.hybrid.sums import (
    LIMITS,
    centred,
    check_hybrid_node,
    hybrid_form,
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
    def of(cls, op: kit.Op, rng: np.random.Generator) -> HybridConvolution:
        """The attributes of a convolution's sample."""
        a = op.attributes
        assert isinstance(a, Convolution)
        return cls(a.stride, a.dilation, a.padding, a.activation)

    @classmethod
    def of_onnx(cls, op: kit.Op, rng: np.random.Generator) -> HybridConvolution:
        """The attributes of a convolution's sample, with ONNX's range."""
        return replace(cls.of(op, rng), range=Range.ONNX)


def _reference(op: kit.Operator[HybridConvolution], inputs: kit.Inputs) -> kit.Arrays:
    """A sum is multiplied by its filter's scale and then by the image's, where images have a zero
    point and convolutions are not depthwise; else by their product.
    """
    image, steps = centred(inputs[kit.INPUT].astype(np.float32), op.attributes.range)
    filters = real_weights(op, inputs[kit.WEIGHTS])
    filters = filters.transpose(3, 1, 2, 0) if _is_depthwise(op) else filters
    sums = in_float32(window_sums(op, image, filters))
    scales = np.array(op.input(kit.WEIGHTS).q.scales, np.float32)
    image_scales = steps.reshape(-1, 1, 1, 1)
    scaled = sums * scales * image_scales if _in_turn(op) else sums * (scales * image_scales)
    return (with_bias(scaled, op, inputs, op.attributes.activation),)


def _is_depthwise(op: kit.AnyOperator) -> bool:
    return op.kind in ("depthwise_conv2d", "dynamic_depthwise_conv2d")


def _in_turn(op: kit.Operator[HybridConvolution]) -> bool:
    return op.attributes.range is Range.ASYMMETRIC and not _is_depthwise(op)


def _select(op: kit.Operator[HybridConvolution], core: kit.Core) -> kit.Kernel:
    a, x, depthwise = op.attributes, op.input(kit.INPUT), _is_depthwise(op)
    depth = 1 if depthwise else op.input(kit.WEIGHTS).shape[3]
    window = window_f32(x.shape, op.y.shape, window_of(op), a.activation, depth)
    if depthwise:
        return depthwise_kernel(op, window, a.range)
    groups = x.shape[3] // depth
    return convolution_kernel(op, core, window, a.range, in_turn=_in_turn(op), groups=groups)


def _axes(op: kit.AnyOperator) -> tuple[kit.Axis, ...]:
    """Without groups, output channels: each has filters of its own."""
    if op.input(kit.WEIGHTS).shape[3] != op.input(kit.INPUT).shape[3]:
        return ()
    filters = (kit.Reach(0),) * (len(op.inputs) - 1)
    return (kit.Axis(3, (None, *filters), lambda part: op.attributes),)


def _reader(axis: int) -> Callable[[kit.TfliteNode], kit.ReadOp]:
    """The reader of filters that have one scale, or one for each index of `axis`."""

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        check_hybrid_node(node, 4, axis)
        walk, x, weights = vars(read_walk(node)), node.inputs[kit.INPUT], node.inputs[kit.WEIGHTS]
        assert x is not None and weights is not None
        grouped = axis == 0 and x.shape[3] != weights.shape[3]
        if grouped and len(weights.q.scales) != weights.shape[0]:
            raise node.unsupported(
                "one scale of all filters beside groups, which LiteRT refuses, too",
                "convert it with a newer converter, which gives each filter a scale",
            )
        chosen = _range_of(x, weights) if axis == 0 else Range.ASYMMETRIC
        activation = kit.read_activation(node)
        attributes = HybridConvolution(**walk, activation=activation, range=chosen)
        return kit.ReadOp(attributes, kit.present_inputs(node))

    return read


def _range_of(x: kit.Tensor, weights: kit.Tensor) -> Range:
    """LiteRT's: with a zero point where filters have scales of their own, or in groups."""
    alike = len(set(weights.q.scales)) == 1 and x.shape[3] == weights.shape[3]
    return Range.SYMMETRIC if alike else Range.ASYMMETRIC


def _write(op: kit.Operator[HybridConvolution]) -> kit.WrittenOp:
    return write_window(op, op.attributes.activation, "CONV_2D", "Conv2DOptions", version=5)


def _depthwise_write(op: kit.Operator[HybridConvolution]) -> kit.WrittenOp:
    multiplier = op.y.shape[3] // op.input(kit.INPUT).shape[3]
    builtin = "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"
    chosen = op.attributes.activation
    return write_window(op, chosen, *builtin, version=6, depthMultiplier=multiplier)


def hybrid_conv2d(plain: kit.Form[Any]) -> kit.Form[Any]:
    """The form of a float `conv2d` whose filters are int8."""

    def sample(rng: np.random.Generator) -> kit.Graph:
        graph = hybrid_sample(plain.sample, 0, HybridConvolution.of)(rng)
        (op,), x, weights = graph.ops, graph.tensors["x"], graph.tensors["weights"]
        if rng.random() < 0.2:
            count = len(weights.q.scales)
            if weights.shape[3] == x.shape[3] and rng.random() < 0.5:
                count = 1
            alike = (weights.q.scales[0],) * count
            q = kit.Quantisation(alike, (0,) * count, 0 if count > 1 else None)
            weights = replace(weights, quantisation=q)
        assert isinstance(op.attributes, HybridConvolution)
        chosen = replace(op, attributes=replace(op.attributes, range=_range_of(x, weights)))
        graph = kit.with_tensors(graph, lambda t: weights if t.name == "weights" else t)
        return replace(graph, ops=(chosen,))

    return hybrid_form(
        plain,
        attributes=HybridConvolution,
        reference=_reference,
        select=_select,
        sample=sample,
        axes=_axes,
        tflite=kit.TfliteBinding(("CONV_2D",), _reader(0), _write),
    )


def hybrid_depthwise(plain: kit.Form[Any]) -> kit.Form[Any]:
    """The form of a float `depthwise_conv2d` whose filters are int8."""
    return hybrid_form(
        plain,
        attributes=HybridConvolution,
        reference=_reference,
        select=_select,
        sample=hybrid_sample(plain.sample, 3, HybridConvolution.of),
        axes=lambda op: (),
        tflite=kit.TfliteBinding(("DEPTHWISE_CONV_2D",), _reader(3), _depthwise_write),
        limits=f"{LIMITS}; one scale is each filter's",
    )
