"""Convolutions of int16 images with int8 filters: choice of kernel, scratch and constants.

CMSIS-NN's fast kernels sum in int32, so they take fewer than 512 products a sum. Its other kernels
sum in int64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.convolution import extents
from toolchain.ops.convolution.common import (
    BIAS,
    INPUT,
    WEIGHTS,
    channel_requantisation,
    constant_of,
    convolution_of,
    window_of,
)
from toolchain.ops.convolution.overlaps import gathered_overlap
from toolchain.ops.convolution.structs import cmsis_arguments, conv_shape
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Output,
    Packed,
    Struct,
    constant,
)
from toolchain.ops.preference import NoKernelError
from toolchain.ops.readers.int16 import bias_of, check_sums, held_by_cmsis_nn, largest_sums
from toolchain.ops.window import Window

_FAST_TAPS = 512
"""A sum of this many products of int16 and int8 may overflow int32."""


def select_conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """CMSIS-NN's function; for groups, and for sums that it does not hold, Thimble's own."""
    own = _groups(op, graph) or not _held(op, graph, _filters(op, graph))
    return (own_conv2d if own else cmsis_nn_conv2d)(op, graph, core)


def _filters(op: Op, graph: Graph) -> NDArray[np.generic]:
    """The weights of an ordinary or transposed convolution, a row each output channel."""
    weights = graph.input(op, WEIGHTS)
    return constant_of(weights).reshape(weights.shape[0], -1)


def _held(op: Op, graph: Graph, filters: NDArray[np.generic]) -> bool:
    """Whether CMSIS-NN's kernels hold every sum."""
    return held_by_cmsis_nn(*_sums(op, graph, filters))


def _sums(
    op: Op, graph: Graph, filters: NDArray[np.generic]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest magnitude of each channel's sum, and the factor that scales it."""
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    factors = x.q.scale * np.array(weights.q.scales) / y.q.scale
    bias = bias_of(op, graph, BIAS, len(filters))
    return largest_sums(filters.astype(np.int64), bias), np.broadcast_to(factors, len(filters))


def _groups(op: Op, graph: Graph) -> bool:
    return graph.input(op, INPUT).shape[3] != graph.input(op, WEIGHTS).shape[3]


def cmsis_nn_conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """The function that `arm_convolve_wrapper_s16` would choose.

    Raises NoKernelError for groups and for sums that it does not hold.

    The fast kernel gathers the windows of two pixels before it writes them. The other reads the
    whole image again for each channel.
    """
    weights, window = graph.input(op, WEIGHTS), window_of(op, graph)
    activation, (channels, height, width, depth) = convolution_of(op).activation, weights.shape
    if _groups(op, graph):
        raise NoKernelError("CMSIS-NN's convolutions have no groups")
    filters = _filters(op, graph)
    if not _held(op, graph, filters):
        raise NoKernelError("arm_convolve_s16 does not hold the sums")
    few = height * width * depth < _FAST_TAPS
    fast = core.dsp and not core.mve and few and window.dilation == (1, 1)
    scratch = 2 * 2 * height * width * depth if fast else 0
    arguments = cmsis_arguments(
        op,
        graph,
        window,
        activation,
        scratch,
        filters=((channels, height, width, depth), Input(1)),
        bias=Packed("bias"),
    )
    function = "arm_convolve_fast_s16" if fast else "arm_convolve_s16"
    return Kernel(
        (Call(function, arguments, status=True),),
        extents.int16_conv,
        constants=_per_channel(op, graph, filters),
        scratch_bytes=scratch,
        find_overlaps=lambda: gathered_overlap(op, graph, window, pixels=2) if fast else (),
    )


def own_conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """Thimble's kernel, which takes groups, too."""
    window, activation = window_of(op, graph), convolution_of(op).activation
    return own_kernel(op, graph, "thimble_convolve_s16", window, activation)


def select_depthwise(op: Op, graph: Graph, core: Core) -> Kernel:
    """CMSIS-NN's function; for sums that it does not hold, Thimble's own with groups of one
    channel.
    """
    weights = constant_of(graph.input(op, WEIGHTS))
    by_channel = weights.reshape(-1, weights.shape[3]).T
    if _held(op, graph, by_channel):
        return _cmsis_nn_depthwise(op, graph, core)
    window, activation = window_of(op, graph), convolution_of(op).activation
    constants = (
        constant("weights", by_channel.reshape(-1), "filters, channel x height x width"),
        *_per_channel(op, graph, by_channel),
    )
    call = _own_call(op, graph, "thimble_convolve_s16", window, activation, 1, Packed("weights"))
    return Kernel((call,), extents.int16_own_depthwise, constants=constants)


def _cmsis_nn_depthwise(op: Op, graph: Graph, core: Core) -> Kernel:
    """The function that `arm_depthwise_conv_wrapper_s16` would choose.

    The fast kernel gathers the window of one pixel, on Helium those of four. On Helium it also
    reads beyond the last channel, up to a multiple of four channels.
    """
    x, weights, window = graph.input(op, INPUT), graph.input(op, WEIGHTS), window_of(op, graph)
    channels, (height, width) = weights.shape[3], window.kernel
    few = height * width < _FAST_TAPS
    fast = core.dsp or core.mve
    fast = fast and channels == x.shape[3] and few and window.dilation == (1, 1)
    spare = -channels % 4 if fast and core.mve else 0
    window_bytes = 2 * channels * height * width
    scratch = (4 * window_bytes + 8 if core.mve else window_bytes) if fast else 0
    arguments = cmsis_arguments(
        op,
        graph,
        window,
        convolution_of(op).activation,
        scratch,
        filters=(weights.shape, Packed("weights")),
        bias=Packed("bias"),
        multiplicity=channels // x.shape[3],
    )
    function = "arm_depthwise_conv_fast_s16" if fast else "arm_depthwise_conv_s16"
    filters = constant_of(weights).reshape(-1, channels)
    stored = np.pad(filters.reshape(-1), (0, spare))
    pixels = 4 if core.mve else 1
    return Kernel(
        (Call(function, arguments, status=True),),
        extents.int16_depthwise,
        constants=(
            constant("weights", stored, "filters, height x width x channels"),
            *_per_channel(op, graph, filters.T, spare),
        ),
        scratch_bytes=scratch,
        find_overlaps=lambda: gathered_overlap(op, graph, window, pixels, core.mve) if fast else (),
    )


def own_kernel(
    op: Op, graph: Graph, function: str, window: Window, activation: Activation
) -> Kernel:
    """Thimble's kernels, which sum in int64: for grouped and for transposed convolutions."""
    depth = graph.input(op, WEIGHTS).shape[3]
    call = _own_call(op, graph, function, window, activation, depth, Input(1))
    constants = _per_channel(op, graph, _filters(op, graph))
    return Kernel((call,), extents.int16_own, constants=constants)


def _own_call(
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
            "input": Input(0),
            "filters": filters,
            "output": Output(0),
        },
    )


def _per_channel(
    op: Op, graph: Graph, filters: NDArray[np.generic], spare: int = 0
) -> tuple[Constant, ...]:
    """Bias and requantisation of each channel, then `spare` channels of nothing.

    Raises UnsupportedError where LiteRT's scaling of a sum is undefined.
    """
    channels = len(filters)
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    bias = bias_of(op, graph, BIAS, channels)
    check_sums(op, *_sums(op, graph, filters))
    multiplier, shift = channel_requantisation(x, weights, y, channels)
    wanted = "requantisation factor of each channel, Q0.31"
    return (
        constant("bias", np.pad(bias, (0, spare)), "int64"),
        constant("multiplier", np.pad(multiplier, (0, spare)), wanted),
        constant("shift", np.pad(shift, (0, spare)), "left shift of each channel"),
    )
