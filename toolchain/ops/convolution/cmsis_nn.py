"""CMSIS-NN's int8 convolutions: which function takes an operator.

The functions are those that `arm_convolve_wrapper_s8` and `arm_depthwise_conv_wrapper_s8` would
choose on the core, except where these read beyond the image or refuse the operator (5.0.0).
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import Convolution, window_of
from toolchain.ops.convolution.kernels.cmsis_nn import (
    arm_convolve_1x1_s8,
    arm_convolve_1x1_s8_fast,
    arm_convolve_s8,
    arm_depthwise_conv_s8,
    arm_depthwise_conv_s8_opt,
    shared,
)

_INT16_MAX = 32767
"""The largest coordinate that the depthwise convolutions hold, in int16."""


def conv2d(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """The function that `arm_convolve_wrapper_s8` would choose.

    Raises NoKernelError for groups, weights with a zero point, and ONNX's rounding.
    """
    shared.require_plain(op)
    x, weights, window = op.input(kit.INPUT), op.input(kit.WEIGHTS), window_of(op)
    if weights.shape[3] != x.shape[3]:
        raise kit.NoKernelError("CMSIS-NN's convolutions have no groups")
    if max(*x.shape, *weights.shape, *op.y.shape) > shared.MOST_SIZE:
        raise kit.NoKernelError(
            f"CMSIS-NN's convolutions take no dimension above {shared.MOST_SIZE:,}"
        )
    if (
        window.kernel == parts.PLAIN
        and window.padding == kit.UNPADDED
        and window.dilation == parts.PLAIN
    ):
        if window.stride == parts.PLAIN:
            return arm_convolve_1x1_s8_fast.kernel(op, core, window)
        return arm_convolve_1x1_s8.kernel(op, core, window)
    if arm_convolve_1x1_s8.takes_row(op, core, window):
        return arm_convolve_1x1_s8.kernel(op, core, window, arm_convolve_1x1_s8.ROWS)
    return arm_convolve_s8.kernel(op, core, window)


def depthwise(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """The function that `arm_depthwise_conv_wrapper_s8` would choose.

    Raises NoKernelError for weights with a zero point and ONNX's rounding.
    """
    shared.require_plain(op)
    x, weights, window = op.input(kit.INPUT), op.input(kit.WEIGHTS), window_of(op)
    if max(*x.shape, *weights.shape, *op.y.shape) > _INT16_MAX:
        raise kit.NoKernelError(f"CMSIS-NN's depthwise convolutions count to {_INT16_MAX:,}")
    simple = weights.shape[3] == x.shape[3] and x.shape[0] == 1 and window.dilation == parts.PLAIN
    few = window.kernel[0] * window.kernel[1] <= shared.MOST_SIZE
    if simple and few and core.mve:
        return blocked_depthwise(op, core)
    if simple and arm_depthwise_conv_s8.takes_3x3(op, window):
        return arm_depthwise_conv_s8.kernel(op, window, arm_depthwise_conv_s8.SMALL)
    if simple and few and core.dsp and arm_depthwise_conv_s8_opt.takes_window(op, window):
        return arm_depthwise_conv_s8_opt.kernel(op, core, window)
    return arm_depthwise_conv_s8.kernel(op, window)


def blocked_depthwise(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """The function for blocks of channels, on Helium. Raises NoKernelError where it does not take
    the operator.
    """
    shared.require_plain(op)
    x, weights, window = op.input(kit.INPUT), op.input(kit.WEIGHTS), window_of(op)
    if weights.shape[3] != x.shape[3] or x.shape[0] != 1 or window.dilation != parts.PLAIN:
        raise kit.NoKernelError("it takes one image, one filter a channel and no dilation")
    if window.kernel[0] * window.kernel[1] > shared.MOST_SIZE:
        raise kit.NoKernelError(f"it counts the taps of a window to {shared.MOST_SIZE:,}")
    return arm_depthwise_conv_s8_opt.kernel(op, core, window)
