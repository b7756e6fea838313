"""What the kernels of int16 images and int8 filters share (TFLite's 16x8 scheme): sums, constants,
and the calls of Thimble's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.convolution.common import channel_requantisation
from toolchain.ops.convolution.kernels.shape import image, input_shape, output_shape, reach, taps
from toolchain.ops.convolution.structs import conv_shape
from toolchain.ops.extents import Extent, Extents, whole
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    Struct,
    Touched,
    constant,
)
from toolchain.ops.readers.int16 import bias_of, check_sums, held_by_cmsis_nn, largest_sums
from toolchain.ops.weighted import (
    BIAS,
    INPUT,
    WEIGHTS,
    constant_of,
)
from toolchain.ops.window import Window

FAST_TAPS = 512
"""A sum of this many products of int16 and int8 may overflow int32: CMSIS-NN's fast kernels take
fewer. Its other kernels sum in int64."""


def rows_of(op: Op, graph: Graph) -> NDArray[np.generic]:
    """The weights of an ordinary or transposed convolution, a row each output channel."""
    weights = graph.input(op, WEIGHTS)
    return constant_of(weights).reshape(weights.shape[0], -1)


def held(op: Op, graph: Graph, rows: NDArray[np.generic]) -> bool:
    """Whether CMSIS-NN's kernels hold every sum of the filters, a row each channel."""
    return held_by_cmsis_nn(*_sums(op, graph, rows))


def _sums(
    op: Op, graph: Graph, rows: NDArray[np.generic]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest magnitude of each channel's sum, and the factor that scales it."""
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    factors = x.q.scale * np.array(weights.q.scales) / y.q.scale
    bias = bias_of(op, graph, BIAS, len(rows))
    return largest_sums(rows.astype(np.int64), bias), np.broadcast_to(factors, len(rows))


def per_channel(
    op: Op, graph: Graph, rows: NDArray[np.generic], spare: int = 0
) -> tuple[Constant, ...]:
    """Bias and requantisation of each channel, then `spare` channels of nothing.

    Raises UnsupportedError where LiteRT's scaling of a sum is undefined.
    """
    channels = len(rows)
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    bias = bias_of(op, graph, BIAS, channels)
    check_sums(op, *_sums(op, graph, rows))
    multiplier, shift = channel_requantisation(x, weights, y, channels)
    wanted = "requantisation factor of each channel, Q0.31"
    return (
        constant("bias", np.pad(bias, (0, spare)), "int64"),
        constant("multiplier", np.pad(multiplier, (0, spare)), wanted),
        constant("shift", np.pad(shift, (0, spare)), "left shift of each channel"),
    )


def per_channel_bytes(channels: int) -> dict[str, int]:
    """Bytes of what `per_channel` gives."""
    return {"multiplier": 4 * channels, "shift": 4 * channels, "bias": 8 * channels}


def own_kernel(
    op: Op, graph: Graph, function: str, window: Window, activation: Activation
) -> Kernel:
    """One of Thimble's kernels, which sum in int64: for grouped and for transposed convolutions."""
    depth = graph.input(op, WEIGHTS).shape[3]
    call = own_call(op, graph, function, window, activation, depth, Input(WEIGHTS))
    return Kernel((call,), _extents, constants=per_channel(op, graph, rows_of(op, graph)))


def own_call(
    op: Op,
    graph: Graph,
    function: str,
    window: Window,
    activation: Activation,
    depth: int,
    filters: Argument,
) -> Call:
    """A call of one of Thimble's kernels. `depth`: the input channels that a filter reads."""
    low, high = clamp_range(activation, graph.output(op))
    scaling = Struct(
        "thimble_conv_s16_scaling",
        {
            "bias": Packed("bias"),
            "multiplier": Packed("multiplier"),
            "shift": Packed("shift"),
            "min": low,
            "max": high,
        },
    )
    return Call(
        function,
        {
            "shape": conv_shape(op, graph, window, depth),
            "scaling": scaling,
            "input": Input(INPUT),
            "filters": filters,
            "output": Output(0),
        },
    )


def _extents(touched: Touched) -> Extents:
    return own_extents(touched, {WEIGHTS: whole(filter_bytes(touched.call))}, {})


def filter_bytes(call: Call) -> int:
    """Of all filters that a call of Thimble's reads."""
    return call["shape.output_c"] * taps(call)


def own_extents(
    touched: Touched, filters: Mapping[int, Extent], constants: Mapping[str, int]
) -> Extents:
    """Of a call of Thimble's, whose filters are an input, or one of the constants."""
    call = touched.call
    return Extents(
        {INPUT: image(input_shape(call), 2), **filters},
        {0: image(output_shape(call), 2)},
        {**per_channel_bytes(call["shape.output_c"]), **constants},
        0,
        reach(call),
    )
