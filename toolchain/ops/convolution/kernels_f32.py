"""The float32 convolutions: the call that they share, and the bytes it touches."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.common import INPUT
from toolchain.ops.convolution.window_f32 import (
    bias_f32,
    filters_f32,
    image_f32,
    reach_f32,
    window_f32,
)
from toolchain.ops.extents import Extents
from toolchain.ops.kernel import Call, Input, Kernel, Output, Touched
from toolchain.ops.window import Window


def float_kernel(
    op: Op, graph: Graph, function: str, window: Window, activation: Activation, depth: int
) -> Kernel:
    """A call of `function`. A filter reads `depth` channels of the input."""
    x, y = graph.input(op, INPUT), graph.output(op)
    call = Call(
        function,
        {
            "window": window_f32(x.shape, y.shape, window, activation, depth),
            "input": Input(0),
            "filters": Input(1),
            "bias": Input(2),
            "output": Output(0),
        },
    )
    return Kernel((call,), _extents)


def _extents(touched: Touched) -> Extents:
    call = touched.call
    depthwise = call.function == "thimble_depthwise_conv_f32"
    read = {0: image_f32(call, "input")}
    read[1] = filters_f32(call, 1 if depthwise else call["window.depth"])
    if touched.has(2):
        read[2] = bias_f32(call)
    return Extents(read, {0: image_f32(call, "output")}, largest=reach_f32(call))
