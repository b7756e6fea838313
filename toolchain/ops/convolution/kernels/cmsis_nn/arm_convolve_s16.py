"""`arm_convolve_s16`: a convolution of int16 images without groups, with sums in int64.

It reads the whole image again for each channel.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from toolchain.ir import Graph, Op
from toolchain.ops.convolution.common import convolution_of
from toolchain.ops.convolution.kernels.cmsis_nn.shared import dims_of, reach
from toolchain.ops.convolution.kernels.int16 import per_channel, per_channel_bytes, rows_of
from toolchain.ops.convolution.kernels.shape import image
from toolchain.ops.convolution.structs import cmsis_arguments
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import Call, Input, Kernel, Packed, SafeOverlap, Touched
from toolchain.ops.weighted import INPUT, WEIGHTS
from toolchain.ops.window import Window

FUNCTION = "arm_convolve_s16"


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
) -> Kernel:
    """A call of `function`, an int16 convolution without groups."""
    channels, height, width, depth = graph.input(op, WEIGHTS).shape
    arguments = cmsis_arguments(
        op,
        graph,
        window,
        convolution_of(op).activation,
        scratch_bytes,
        filters=((channels, height, width, depth), Input(WEIGHTS)),
        bias=Packed("bias"),
    )
    return Kernel(
        (Call(function, arguments, status=True),),
        extents,
        constants=per_channel(op, graph, rows_of(op, graph)),
        scratch_bytes=scratch_bytes,
        find_overlaps=overlaps,
    )


def _extents(touched: Touched) -> Extents:
    return int16_extents(touched, 0)


def int16_extents(touched: Touched, scratch_bytes: int) -> Extents:
    """Of what `int16_kernel` gives."""
    call = touched.call
    x, y, filters = (dims_of(call, name) for name in ("input", "output", "filter"))
    return Extents(
        {INPUT: image(x, 2), WEIGHTS: whole(math.prod(filters))},
        {0: image(y, 2)},
        per_channel_bytes(y[3]),
        scratch_bytes,
        reach(call, "conv_params"),
    )
