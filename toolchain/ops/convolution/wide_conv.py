"""Convolutions of int16 images with int8 filters: kernel choice, scratch and constants.

CMSIS-NN's fast forms hold partial sums in int32, so they take fewer than 512 products a sum; the
others sum in int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.convolution.common import (
    BIAS,
    INPUT,
    WEIGHTS,
    Window,
    channel_requantisation,
    constant_of,
)
from toolchain.ops.convolution.lowering import round_up
from toolchain.ops.readers.wide import bias_of, check_sums
from toolchain.ops.spec import Constant, Lowering

_FAST_TAPS = 512
"""Sums of as many products of int16 and int8 may overrun int32."""
_DIMENSIONS = 32767
"""Depthwise kernels index rows and columns in int16."""


def conv2d_kernel(op: Op, graph: Graph, core: Core, window: Window) -> str:
    """The function that `arm_convolve_wrapper_s16` would choose."""
    taps = window.kernel[0] * window.kernel[1] * graph.input(op, WEIGHTS).shape[3]
    fast = core.dsp and not core.mve and taps < _FAST_TAPS and window.dilation == (1, 1)
    return "arm_convolve_fast_s16" if fast else "arm_convolve_s16"


def depthwise_kernel(op: Op, graph: Graph, core: Core, window: Window) -> str:
    """The function that `arm_depthwise_conv_wrapper_s16` would choose."""
    single = graph.input(op, WEIGHTS).shape[3] == graph.input(op, INPUT).shape[3]
    few = window.kernel[0] * window.kernel[1] < _FAST_TAPS
    fast = (core.dsp or core.mve) and single and few and window.dilation == (1, 1)
    return "arm_depthwise_conv_fast_s16" if fast else "arm_depthwise_conv_s16"


def lower_conv2d(
    op: Op, graph: Graph, core: Core, window: Window, activation: Activation
) -> Lowering:
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    channels, height, width, depth = weights.shape
    function = conv2d_kernel(op, graph, core, window)
    fast = function == "arm_convolve_fast_s16"
    filters = constant_of(weights).reshape(channels, -1)
    scratch = 2 * 2 * height * width * depth if fast else 0
    return Lowering(
        functions=(function,),
        scratch_bytes=scratch,
        constants=_per_channel(op, graph, filters.astype(np.int64)),
        fields=_fields(op, graph, window, activation)
        | {
            "function": function,
            "scratch_bytes": scratch,
            "input": x.shape,
            "filter": (channels, height, width, depth),
        },
    )


def lower_depthwise(
    op: Op, graph: Graph, core: Core, window: Window, activation: Activation
) -> Lowering:
    """On Helium the fast kernel reads beyond the last channel, up to a multiple of four."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    channels, (height, width) = weights.shape[3], window.kernel
    function = depthwise_kernel(op, graph, core, window)
    fast = function == "arm_depthwise_conv_fast_s16"
    filters = constant_of(weights).reshape(-1, channels)
    spare = round_up(channels, 4) - channels if fast and core.mve else 0
    window_bytes = 2 * channels * height * width
    scratch = (4 * window_bytes + 8 if core.mve else window_bytes) if fast else 0
    return Lowering(
        functions=(function,),
        scratch_bytes=scratch,
        constants=(
            Constant(
                "weights",
                np.pad(filters.reshape(-1), (0, spare)),
                "filters, height x width x channels",
            ),
            *_per_channel(op, graph, filters.T.astype(np.int64), spare),
        ),
        fields=_fields(op, graph, window, activation)
        | {
            "function": function,
            "scratch_bytes": scratch,
            "input": x.shape,
            "filter": (1, height, width, channels),
            "multiplicity": channels // x.shape[3],
        },
    )


def lower_grouped(op: Op, graph: Graph, window: Window, activation: Activation) -> Lowering:
    """Groups: our own kernel, with sums of int64."""
    weights = graph.input(op, WEIGHTS)
    filters = constant_of(weights).reshape(weights.shape[0], -1)
    return Lowering(
        functions=("thimble_convolve_s16", "thimble_dot_s16"),
        constants=_per_channel(op, graph, filters.astype(np.int64)),
        fields=_own_fields(op, graph, window, activation) | {"function": "thimble_convolve_s16"},
    )


def lower_transpose_conv2d(
    op: Op, graph: Graph, window: Window, activation: Activation
) -> Lowering:
    weights = graph.input(op, WEIGHTS)
    filters = constant_of(weights).reshape(weights.shape[0], -1)
    return Lowering(
        functions=("thimble_transpose_conv_s16", "thimble_dot_s16"),
        constants=_per_channel(op, graph, filters.astype(np.int64)),
        fields=_own_fields(op, graph, window, activation),
    )


def _own_fields(op: Op, graph: Graph, window: Window, activation: Activation) -> dict[str, Any]:
    """What `_conv_shape.c.j2` prints."""
    return _fields(op, graph, window, activation) | {
        "input": graph.input(op, INPUT).shape,
        "depth": graph.input(op, WEIGHTS).shape[3],
        "kernel": window.kernel,
        "input_offset": 0,
    }


def _per_channel(
    op: Op, graph: Graph, filters: NDArray[np.int64], spare: int = 0
) -> tuple[Constant, ...]:
    """Bias and requantisation of each channel, then `spare` channels of nothing."""
    channels = len(filters)
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    bias = bias_of(op, graph, BIAS, channels)
    factors = x.q.scale * np.array(weights.q.scales) / y.q.scale
    check_sums(op, filters, bias, np.broadcast_to(factors, (channels,)))
    multiplier, shift = channel_requantisation(x, weights, y, channels)
    return (
        Constant("bias", np.pad(bias, (0, spare)), "int64"),
        Constant(
            "multiplier",
            np.pad(multiplier, (0, spare)),
            "requantisation factor of each channel, Q0.31",
        ),
        Constant("shift", np.pad(shift, (0, spare)), "left shift of each channel"),
    )


def _fields(op: Op, graph: Graph, window: Window, activation: Activation) -> dict[str, Any]:
    y = graph.output(op)
    low, high = clamp_range(activation, y)
    return {
        "output": y.shape,
        "stride": window.stride,
        "dilation": window.dilation,
        "padding": window.padding,
        "activation_min": low,
        "activation_max": high,
    }
