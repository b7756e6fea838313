"""`arm_depthwise_conv_3x3_s8`: a depthwise convolution of one image by windows of 3x3, by channels
four at a time.
"""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.convolution.kernels.cmsis_nn.shared import (
    depthwise_kernel,
    extents_of_lean_depthwise,
)
from toolchain.ops.convolution.kernels.windows import seen_taps, walked
from toolchain.ops.kernel import Kernel, Terms
from toolchain.ops.weighted import INPUT
from toolchain.ops.window import Window

FUNCTION = "arm_depthwise_conv_3x3_s8"


def takes_window(op: Op, graph: Graph, window: Window) -> bool:
    """Whether it applies: it reads the middle column of every window."""
    x, y, pad = graph.input(op, INPUT), graph.output(op), window.padding
    middle = (y.shape[2] - 1) * window.stride[1] - pad.left + 1
    return window.kernel == (3, 3) and max(pad.top, pad.left) <= 1 and middle < x.shape[2]


def kernel(op: Op, graph: Graph, window: Window) -> Kernel:
    """Of one filter a channel, without dilation. Raises as `channel_factors`."""
    return depthwise_kernel(
        op,
        graph,
        FUNCTION,
        extents=extents_of_lean_depthwise,
        terms=lambda: four_channel_terms(op, graph, window),
    )


def four_channel_terms(op: Op, graph: Graph, window: Window) -> Terms:
    """Of loops over the taps in the image, for four channels and then for each that is left."""
    batches, out_h, out_w, channels = graph.output(op).shape
    rows, columns = walked(op, graph, window)
    pixels, seen = batches * out_h * out_w, seen_taps(op, graph, window)
    seen_rows, (fours, rest) = batches * rows.taps * columns.windows, divmod(channels, 4)
    return {
        "call": 1.0,
        "output row": batches * out_h,
        "pixel": pixels,
        "four channels": pixels * fours,
        "four channels row": seen_rows * fours,
        "four channels tap": seen * fours,
        "channel": pixels * rest,
        "channel row": seen_rows * rest,
        "channel tap": seen * rest,
    }
