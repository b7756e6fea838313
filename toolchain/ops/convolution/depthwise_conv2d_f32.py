"""Depthwise convolution in float32. TFLite DEPTHWISE_CONV_2D, `reference_ops::DepthwiseConv`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.common import convolution_of, window_of
from toolchain.ops.convolution.depthwise_conv2d_s8 import S8
from toolchain.ops.convolution.kernels import thimble_depthwise_conv_f32
from toolchain.ops.convolution.window_f32 import window_f32
from toolchain.ops.kernel import Kernel
from toolchain.ops.readers.float32 import (
    float32_form,
    image_patches,
    with_bias_and_activation,
)
from toolchain.ops.spec import Array
from toolchain.ops.weighted import INPUT, WEIGHTS


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y = graph.input(op, INPUT), graph.output(op)
    image = np.repeat(inputs[INPUT].astype(np.float32), y.shape[3] // x.shape[3], axis=3)
    filters = inputs[WEIGHTS].astype(np.float32)
    sums = np.zeros(y.shape, np.float32)
    for row, patches in enumerate(image_patches(image, window_of(op, graph), y.shape)):
        for column, seen in enumerate(patches):
            sums = sums + seen * filters[0, row, column]
    return (with_bias_and_activation(sums, op, inputs, convolution_of(op).activation),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, y, window = graph.input(op, INPUT), graph.output(op), window_of(op, graph)
    activation = convolution_of(op).activation
    return thimble_depthwise_conv_f32.kernel(
        window_f32(x.shape, y.shape, window, activation, depth=1)
    )


F32 = float32_form(
    S8, "float32, constant weights; any stride, dilation, multiplier", _reference, _select
)
