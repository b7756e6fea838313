"""`arm_convolve_s16`: a convolution of int16 images without groups, with sums in int64.

It reads the whole image again for each channel.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import int16, shapes
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_convolve_s16"


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """Of any window, where the function holds the sums. Raises as `per_channel`."""
    return int16_kernel(op, FUNCTION, window, scratch_bytes=0, extents=_extents)


def int16_kernel(
    op: kit.Operator[Convolution],
    function: str,
    window: kit.Window,
    *,
    scratch_bytes: int,
    extents: Callable[[kit.Touched], kit.Extents],
    overlaps: Callable[[], tuple[kit.SafeOverlap, ...]] = tuple,
) -> kit.Kernel:
    """A call of `function`, an int16 convolution without groups."""
    channels, height, width, depth = op.input(kit.WEIGHTS).shape
    arguments = parts.cmsis_arguments(
        op,
        window,
        op.attributes.activation,
        scratch_bytes,
        filters=((channels, height, width, depth), kit.Input(kit.WEIGHTS)),
        bias=kit.Packed("bias"),
    )
    return kit.Kernel(
        (kit.Call(function, arguments, status=True),),
        extents,
        constants=int16.per_channel(op, int16.rows_of(op)),
        scratch_bytes=scratch_bytes,
        find_overlaps=overlaps,
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    return int16_extents(touched, 0)


def int16_extents(touched: kit.Touched, scratch_bytes: int) -> kit.Extents:
    """Of what `int16_kernel` gives."""
    call = touched.call
    x, y, filters = (shared.dims_of(call, name) for name in ("input", "output", "filter"))
    return kit.Extents(
        {kit.INPUT: shapes.image(x, 2), kit.WEIGHTS: kit.whole(math.prod(filters))},
        {0: shapes.image(y, 2)},
        int16.per_channel_bytes(y[3]),
        scratch_bytes,
        shared.reach(call, "conv_params"),
    )
