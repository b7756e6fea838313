"""Kernel choice for the convolutions on each core."""

from __future__ import annotations

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op, Tensor
from toolchain.ops._activation import Activation, clamp_range
from toolchain.ops._conv import (
    BIAS,
    INPUT,
    UNPADDED,
    WEIGHTS,
    Window,
    channel_requantisation,
    constant_of,
)
from toolchain.ops.spec import Array, Constant, Lowering

_MVE_CHANNEL_BLOCK = 124
"""CH_IN_BLOCK_MVE of arm_nnsupportfunctions.h: channels per column buffer."""


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def bias_of(op: Op, graph: Graph, channels: int) -> Array:
    """The bias, or zeros where the operator has none."""
    if len(op.inputs) > BIAS and op.inputs[BIAS]:
        return constant_of(graph.input(op, BIAS)).reshape(-1).astype(np.int32)
    return np.zeros(channels, dtype=np.int32)


def lower_conv2d(
    op: Op, graph: Graph, core: Core, window: Window, activation: Activation
) -> Lowering:
    """The CMSIS-NN function that its wrapper would choose, where its preconditions hold.

    Scratch as `arm_convolve_wrapper_s8_get_buffer_size` gives it.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    channels, height, width, depth = weights.shape
    if depth != x.shape[3]:
        raise UnsupportedError(f"operator {op.name!r}: grouped convolution has no kernel yet")
    taps = height * width * depth
    unpadded = window.padding == UNPADDED
    if (height, width) == (1, 1) and unpadded:
        plain = window.stride == (1, 1)
        function, scratch = "arm_convolve_1x1_s8_fast" if plain else "arm_convolve_1x1_s8", 0
    elif core.mve and _is_one_by_n(x, y, window):
        function, scratch = "arm_convolve_1_x_n_s8", 0
    elif core.mve:
        function, scratch = "arm_convolve_s8", 4 * round_up(taps, 8)
    else:
        function, scratch = "arm_convolve_s8", 4 * round_up(taps, 4)
    multiplier, shift = channel_requantisation(x, weights, y, channels)
    return Lowering(
        functions=(function,),
        scratch_bytes=scratch,
        constants=(
            Constant("multiplier", multiplier, "requantisation factor of each channel, Q0.31"),
            Constant("shift", shift, "left shift of each channel"),
        ),
        fields=_fields(op, graph, window, activation)
        | {"function": function, "scratch_bytes": scratch},
    )


def lower_depthwise_conv2d(
    op: Op, graph: Graph, core: Core, window: Window, activation: Activation
) -> Lowering:
    """The CMSIS-NN function that its wrapper would choose, where its preconditions hold.

    Scratch as `arm_depthwise_conv_wrapper_s8_get_buffer_size` gives it. The Helium kernel reads
    four channels at a time beyond the last and steps from a null bias: its arrays are padded.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    channels, (height, width) = weights.shape[3], window.kernel
    multiplier, shift = channel_requantisation(x, weights, y, channels)
    bias, filters = bias_of(op, graph, channels), constant_of(weights).reshape(-1)
    simple = channels == x.shape[3] and x.shape[0] == 1 and window.dilation == (1, 1)
    scratch = 0
    if simple and core.mve:
        function, scratch = "arm_depthwise_conv_s8_opt", 4 * _MVE_CHANNEL_BLOCK * height * width
        extra = round_up(channels, 4) - channels
        filters, bias = np.pad(filters, (0, extra)), np.pad(bias, (0, extra))
        multiplier, shift = np.pad(multiplier, (0, extra)), np.pad(shift, (0, extra))
    elif (
        simple
        and (height, width) == (3, 3)
        and max(window.padding.top, window.padding.left) <= 1
        and x.shape[2] > 1
    ):
        function = "arm_depthwise_conv_3x3_s8"
    elif simple:
        function = "arm_depthwise_conv_s8_opt"
        scratch = 2 * channels * height * width if core.dsp else 0
    else:
        function = "arm_depthwise_conv_s8"
    return Lowering(
        functions=(function,),
        scratch_bytes=scratch,
        constants=(
            Constant("weights", filters, "filters, height x width x channels"),
            Constant("bias", bias),
            Constant("multiplier", multiplier, "requantisation factor of each channel, Q0.31"),
            Constant("shift", shift, "left shift of each channel"),
        ),
        fields=_fields(op, graph, window, activation)
        | {
            "function": function,
            "scratch_bytes": scratch,
            "channel_multiplier": channels // x.shape[3],
        },
    )


def _is_one_by_n(x: Tensor, y: Tensor, window: Window) -> bool:
    """Whether the Helium 1xN kernel applies: one row, and no padding at either end."""
    total = (y.shape[2] - 1) * window.stride[1] + window.kernel[1] - x.shape[2]
    return (
        x.shape[1] == 1
        and window.kernel[0] == 1
        and window.dilation[1] == 1
        and (window.stride[1] * x.shape[3]) % 4 == 0
        and window.padding == UNPADDED
        and total == 0
    )


def _fields(op: Op, graph: Graph, window: Window, activation: Activation) -> dict[str, object]:
    x, y = graph.input(op, INPUT), graph.output(op)
    low, high = clamp_range(activation, y)
    return {
        "input": x.shape,
        "output": y.shape,
        "kernel": window.kernel,
        "stride": window.stride,
        "dilation": window.dilation,
        "padding": window.padding,
        "input_offset": -x.q.zero_point,
        "output_offset": y.q.zero_point,
        "activation_min": low,
        "activation_max": high,
    }
