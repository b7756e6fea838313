"""2-D convolution of int16 images with int8 filters. TFLite CONV_2D, 16x8.

Arithmetic: LiteRT `reference_integer_ops::ConvPerChannel` with int64 sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.convolution import conv2d
from toolchain.ops.convolution.common import INPUT, WEIGHTS, Window
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.overlaps import gathered_overlap
from toolchain.ops.convolution.wide_conv import conv2d_kernel, lower_conv2d, lower_grouped
from toolchain.ops.readers.wide import WIDE, widened
from toolchain.ops.spec import (
    Lowering,
    ReadOp,
    SafeOverlap,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
    no_reductions,
)


def _attributes(op: Op) -> Conv2D:
    assert isinstance(op.attributes, Conv2D)
    return op.attributes


def _groups(op: Op, graph: Graph) -> int:
    return graph.input(op, INPUT).shape[3] // graph.input(op, WEIGHTS).shape[3]


def _window(op: Op, graph: Graph) -> Window:
    attributes = _attributes(op)
    _, height, width, _ = graph.input(op, WEIGHTS).shape
    return Window((height, width), attributes.stride, attributes.dilation, attributes.padding)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    window, activation = _window(op, graph), _attributes(op).activation
    if _groups(op, graph) > 1:
        return lower_grouped(op, graph, window, activation)
    return lower_conv2d(op, graph, core, window, activation)


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """The fast kernel gathers the windows of two pixels; the other reads all for each channel."""
    window = _window(op, graph)
    if _groups(op, graph) > 1 or conv2d_kernel(op, graph, core, window) != "arm_convolve_fast_s16":
        return ()
    return gathered_overlap(op, graph, window, pixels=2)


def _read(node: TfliteNode) -> ReadOp:
    binding = conv2d.SPEC.tflite
    assert binding is not None
    return binding.read(node)


def _write(op: Op, graph: Graph) -> WrittenOp:
    binding = conv2d.SPEC.tflite
    assert binding is not None
    return binding.write(op, graph)


def _sample(rng: np.random.Generator) -> Graph:
    return widened(conv2d.SPEC.sample(rng))


SPEC = replace(
    conv2d.SPEC,
    kind="conv2d_s16",
    lower=_lower,
    extents=product_extents.wide_conv,
    overlaps=_overlaps,
    sample=_sample,
    tflite=TfliteBinding(("CONV_2D",), _read, _write),
    onnx=None,
    reductions=no_reductions,
    dtypes=WIDE,
    limits="int16 with constant int8 weights and int64 bias; any stride, dilation, groups",
)
