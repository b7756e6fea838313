"""Depthwise convolution of int16 images with int8 filters. TFLite DEPTHWISE_CONV_2D, 16x8.

Arithmetic: LiteRT `reference_integer_ops::DepthwiseConvPerChannel` with int64 sums.
"""

from __future__ import annotations

from dataclasses import replace

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.convolution import depthwise_conv2d
from toolchain.ops.convolution.common import WEIGHTS, Window
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.convolution.overlaps import gathered_overlap
from toolchain.ops.convolution.wide_conv import depthwise_kernel, lower_depthwise
from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.spec import Lowering, SafeOverlap


def _attributes(op: Op) -> DepthwiseConv2D:
    assert isinstance(op.attributes, DepthwiseConv2D)
    return op.attributes


def _window(op: Op, graph: Graph) -> Window:
    attributes = _attributes(op)
    _, height, width, _ = graph.input(op, WEIGHTS).shape
    return Window((height, width), attributes.stride, attributes.dilation, attributes.padding)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    return lower_depthwise(op, graph, core, _window(op, graph), _attributes(op).activation)


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """The fast kernel gathers the windows of a pixel, of four with Helium."""
    window = _window(op, graph)
    if depthwise_kernel(op, graph, core, window) != "arm_depthwise_conv_fast_s16":
        return ()
    return gathered_overlap(op, graph, window, pixels=4 if core.mve else 1, batches_join=core.mve)


SPEC = replace(
    depthwise_conv2d.SPEC,
    kind="depthwise_conv2d_s16",
    lower=_lower,
    extents=product_extents.wide_conv,
    overlaps=_overlaps,
    sample=wide_sample(depthwise_conv2d.SPEC.sample),
    onnx=None,
    dtypes=WIDE,
    limits="int16 with constant int8 weights and int64 bias; any stride, dilation, multiplier",
)
