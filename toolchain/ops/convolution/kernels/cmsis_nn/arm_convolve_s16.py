"""`arm_convolve_s16`: a convolution of int16 images without groups, with sums in int64.

It reads the whole image again for each channel.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels.cmsis_nn.shared import dims_of, reach
from toolchain.ops.convolution.kernels.int16 import per_channel, per_channel_bytes, rows_of
from toolchain.ops.convolution.kernels.shape import image
from toolchain.ops.convolution.structs import cmsis_arguments
from toolchain.ops.weighted import INPUT, WEIGHTS
from toolchain.ops.window import Window

FUNCTION = "arm_convolve_s16"


def kernel(op: kit.Operator[Convolution], window: Window) -> kit.Kernel:
    """Of any window, where the function holds the sums. Raises as `per_channel`."""
    return int16_kernel(op, FUNCTION, window, scratch_bytes=0, extents=_extents)


def int16_kernel(
    op: kit.Operator[Convolution],
    function: str,
    window: Window,
    *,
    scratch_bytes: int,
    extents: Callable[[kit.Touched], kit.Extents],
    overlaps: Callable[[], tuple[kit.SafeOverlap, ...]] = tuple,
) -> kit.Kernel:
    """A call of `function`, an int16 convolution without groups."""
    channels, height, width, depth = op.input(WEIGHTS).shape
    arguments = cmsis_arguments(
        op,
        window,
        op.attributes.activation,
        scratch_bytes,
        filters=((channels, height, width, depth), kit.Input(WEIGHTS)),
        bias=kit.Packed("bias"),
    )
    return kit.Kernel(
        (kit.Call(function, arguments, status=True),),
        extents,
        constants=per_channel(op, rows_of(op)),
        scratch_bytes=scratch_bytes,
        find_overlaps=overlaps,
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    return int16_extents(touched, 0)


def int16_extents(touched: kit.Touched, scratch_bytes: int) -> kit.Extents:
    """Of what `int16_kernel` gives."""
    call = touched.call
    x, y, filters = (dims_of(call, name) for name in ("input", "output", "filter"))
    return kit.Extents(
        {INPUT: image(x, 2), WEIGHTS: kit.whole(math.prod(filters))},
        {0: image(y, 2)},
        per_channel_bytes(y[3]),
        scratch_bytes,
        reach(call, "conv_params"),
    )
