"""CMSIS-NN's int8 convolutions: which function takes an operator.

The functions are those that `arm_convolve_wrapper_s8` and `arm_depthwise_conv_wrapper_s8` would
choose on the core, except where these read beyond the image or refuse the operator (5.0.0).
"""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.common import window_of
from toolchain.ops.convolution.kernel_parts import PLAIN
from toolchain.ops.convolution.kernels.cmsis_nn import (
    arm_convolve_1_x_n_s8,
    arm_convolve_1x1_s8,
    arm_convolve_1x1_s8_fast,
    arm_convolve_s8,
    arm_depthwise_conv_3x3_s8,
    arm_depthwise_conv_s8,
    arm_depthwise_conv_s8_opt,
)
from toolchain.ops.convolution.kernels.cmsis_nn.shared import MOST_SIZE, require_plain
from toolchain.ops.kernel import Kernel
from toolchain.ops.preference import NoKernelError
from toolchain.ops.weighted import INPUT, WEIGHTS
from toolchain.ops.window import UNPADDED

_INT16_MAX = 32767
"""The largest coordinate that the depthwise convolutions hold, in int16."""


def conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """The function that `arm_convolve_wrapper_s8` would choose.

    Raises NoKernelError for groups, weights with a zero point, and ONNX's rounding.
    """
    require_plain(op, graph)
    x, weights, window = graph.input(op, INPUT), graph.input(op, WEIGHTS), window_of(op, graph)
    if weights.shape[3] != x.shape[3]:
        raise NoKernelError("CMSIS-NN's convolutions have no groups")
    if max(*x.shape, *weights.shape, *graph.output(op).shape) > MOST_SIZE:
        raise NoKernelError(f"CMSIS-NN's convolutions take no dimension above {MOST_SIZE:,}")
    if window.kernel == PLAIN and window.padding == UNPADDED and window.dilation == PLAIN:
        if window.stride == PLAIN:
            return arm_convolve_1x1_s8_fast.kernel(op, graph, core, window)
        return arm_convolve_1x1_s8.kernel(op, graph, core, window)
    if arm_convolve_1_x_n_s8.takes(op, graph, core, window):
        return arm_convolve_1_x_n_s8.kernel(op, graph, core, window)
    return arm_convolve_s8.kernel(op, graph, core, window)


def depthwise(op: Op, graph: Graph, core: Core) -> Kernel:
    """The function that `arm_depthwise_conv_wrapper_s8` would choose.

    Raises NoKernelError for weights with a zero point and ONNX's rounding.
    """
    require_plain(op, graph)
    x, weights, window = graph.input(op, INPUT), graph.input(op, WEIGHTS), window_of(op, graph)
    if max(*x.shape, *weights.shape, *graph.output(op).shape) > _INT16_MAX:
        raise NoKernelError(f"CMSIS-NN's depthwise convolutions count to {_INT16_MAX:,}")
    simple = weights.shape[3] == x.shape[3] and x.shape[0] == 1 and window.dilation == PLAIN
    few = window.kernel[0] * window.kernel[1] <= MOST_SIZE
    if simple and few and core.mve:
        return blocked_depthwise(op, graph, core)
    if simple and arm_depthwise_conv_3x3_s8.takes_window(op, graph, window):
        return arm_depthwise_conv_3x3_s8.kernel(op, graph, window)
    if simple and few and core.dsp and arm_depthwise_conv_s8_opt.takes_window(op, graph, window):
        return arm_depthwise_conv_s8_opt.kernel(op, graph, core, window)
    return arm_depthwise_conv_s8.kernel(op, graph, window)


def blocked_depthwise(op: Op, graph: Graph, core: Core) -> Kernel:
    """The function for blocks of channels, on Helium. Raises NoKernelError where it does not take
    the operator.
    """
    require_plain(op, graph)
    x, weights, window = graph.input(op, INPUT), graph.input(op, WEIGHTS), window_of(op, graph)
    if weights.shape[3] != x.shape[3] or x.shape[0] != 1 or window.dilation != PLAIN:
        raise NoKernelError("it takes one image, one filter a channel and no dilation")
    if window.kernel[0] * window.kernel[1] > MOST_SIZE:
        raise NoKernelError(f"it counts the taps of a window to {MOST_SIZE:,}")
    return arm_depthwise_conv_s8_opt.kernel(op, graph, core, window)
