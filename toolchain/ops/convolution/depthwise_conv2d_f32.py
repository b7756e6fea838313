"""Depthwise convolution in float32. TFLite DEPTHWISE_CONV_2D, `reference_ops::DepthwiseConv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.convolution import depthwise_conv2d
from toolchain.ops.convolution.common import INPUT, WEIGHTS, Window
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.readers.floats import (
    FLOAT,
    finished,
    float_sample,
    image_patches,
    no_overlaps,
    window_fields,
)
from toolchain.ops.spec import Array, Lowering, no_reductions


def _attributes(op: Op) -> DepthwiseConv2D:
    assert isinstance(op.attributes, DepthwiseConv2D)
    return op.attributes


def _window(op: Op, graph: Graph) -> Window:
    attributes = _attributes(op)
    _, height, width, _ = graph.input(op, WEIGHTS).shape
    return Window((height, width), attributes.stride, attributes.dilation, attributes.padding)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y = graph.input(op, INPUT), graph.output(op)
    image = np.repeat(inputs[INPUT].astype(np.float32), y.shape[3] // x.shape[3], axis=3)
    filters = inputs[WEIGHTS].astype(np.float32)
    sums = np.zeros(y.shape, np.float32)
    for row, patches in enumerate(image_patches(image, _window(op, graph), y.shape)):
        for column, seen in enumerate(patches):
            sums = sums + seen * filters[0, row, column]
    return (finished(sums, op, inputs, _attributes(op).activation),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    fields = window_fields(op, graph, _window(op, graph), _attributes(op).activation, 1)
    return Lowering(functions=("thimble_depthwise_conv_f32",), fields=fields)


SPEC = replace(
    depthwise_conv2d.SPEC,
    kind="depthwise_conv2d_f32",
    reference=_reference,
    lower=_lower,
    extents=product_extents.window_f32("depthwise"),
    overlaps=no_overlaps,
    sample=float_sample(depthwise_conv2d.SPEC.sample, "depthwise_conv2d_f32"),
    onnx=None,
    reductions=no_reductions,
    dtypes=FLOAT,
    limits="float32, constant weights; any stride, dilation, multiplier",
)
