"""2-D convolution in float32. TFLite CONV_2D, `reference_ops::Conv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.convolution import conv2d
from toolchain.ops.convolution.common import INPUT, WEIGHTS, Window
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.readers.floats import (
    FLOAT,
    finished,
    float_sample,
    image_patches,
    no_overlaps,
    window_fields,
)
from toolchain.ops.spec import Array, Lowering, no_reductions


def _attributes(op: Op) -> Conv2D:
    assert isinstance(op.attributes, Conv2D)
    return op.attributes


def _window(op: Op, graph: Graph) -> Window:
    attributes = _attributes(op)
    _, height, width, _ = graph.input(op, WEIGHTS).shape
    return Window((height, width), attributes.stride, attributes.dilation, attributes.padding)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    channels, depth = weights.shape[0], weights.shape[3]
    group = channels // (x.shape[3] // depth)
    filters = inputs[WEIGHTS].astype(np.float32)
    image = inputs[INPUT].astype(np.float32)
    sums = np.zeros(y.shape, np.float32)
    first = np.arange(channels) // group * depth
    for row, patches in enumerate(image_patches(image, _window(op, graph), y.shape)):
        for column, seen in enumerate(patches):
            for index in range(depth):
                sums = sums + seen[..., first + index] * filters[:, row, column, index]
    return (finished(sums, op, inputs, _attributes(op).activation),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    depth = graph.input(op, WEIGHTS).shape[3]
    fields = window_fields(op, graph, _window(op, graph), _attributes(op).activation, depth)
    return Lowering(functions=("thimble_convolve_f32",), fields=fields)


SPEC = replace(
    conv2d.SPEC,
    kind="conv2d_f32",
    reference=_reference,
    lower=_lower,
    extents=product_extents.window_f32("ordinary"),
    overlaps=no_overlaps,
    sample=float_sample(conv2d.SPEC.sample, "conv2d_f32"),
    onnx=None,
    reductions=no_reductions,
    dtypes=FLOAT,
    limits="float32, constant weights; any stride, dilation, groups",
)
