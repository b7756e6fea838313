"""`arm_depthwise_conv_s16`: any depthwise convolution of int16 images, with sums in int64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from toolchain.ir import Graph, Op
from toolchain.ops.convolution.common import convolution_of
from toolchain.ops.convolution.kernels.cmsis_nn.shared import dims_of, reach
from toolchain.ops.convolution.kernels.int16 import per_channel, per_channel_bytes
from toolchain.ops.convolution.kernels.shape import image
from toolchain.ops.convolution.structs import cmsis_arguments
from toolchain.ops.extents import Extents
from toolchain.ops.kernel import Call, Kernel, Packed, SafeOverlap, Touched, constant
from toolchain.ops.weighted import (
    INPUT,
    WEIGHTS,
    constant_of,
)
from toolchain.ops.window import Window

FUNCTION = "arm_depthwise_conv_s16"


def kernel(op: Op, graph: Graph, window: Window) -> Kernel:
    """Of any window, where the function holds the sums. Raises as `per_channel`."""
    return int16_kernel(op, graph, FUNCTION, window, scratch_bytes=0, extents=_extents)


def int16_kernel(
    op: Op,
    graph: Graph,
    function: str,
    window: Window,
    *,
    scratch_bytes: int,
    extents: Callable[[Touched], Extents],
    overlaps: Callable[[], tuple[SafeOverlap, ...]] = tuple,
    spare: int = 0,
) -> Kernel:
    """A call of `function`, an int16 depthwise convolution. `spare`: channels that it reads beyond
    the last.
    """
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    channels = weights.shape[3]
    arguments = cmsis_arguments(
        op,
        graph,
        window,
        convolution_of(op).activation,
        scratch_bytes,
        filters=(weights.shape, Packed("weights")),
        bias=Packed("bias"),
        multiplicity=channels // x.shape[3],
    )
    filters = constant_of(weights).reshape(-1, channels)
    stored = np.pad(filters.reshape(-1), (0, spare))
    return Kernel(
        (Call(function, arguments, status=True),),
        extents,
        constants=(
            constant("weights", stored, "filters, height x width x channels"),
            *per_channel(op, graph, filters.T, spare),
        ),
        scratch_bytes=scratch_bytes,
        find_overlaps=overlaps,
    )


def _extents(touched: Touched) -> Extents:
    return int16_extents(touched, 0, 0)


def int16_extents(touched: Touched, spare: int, scratch_bytes: int) -> Extents:
    """Of what `int16_kernel` gives."""
    call = touched.call
    x, y, filters = (dims_of(call, name) for name in ("input", "output", "filter"))
    constants = per_channel_bytes(y[3] + spare) | {"weights": math.prod(filters) + spare}
    most = reach(call, "dw_conv_params")
    return Extents({0: image(x, 2)}, {0: image(y, 2)}, constants, scratch_bytes, most)
