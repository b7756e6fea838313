"""`arm_depthwise_conv_s16`: any depthwise convolution of int16 images, with sums in int64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import int16, shapes
from toolchain.ops.convolution.kernels.cmsis_nn import shared

FUNCTION = "arm_depthwise_conv_s16"


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
    spare: int = 0,
) -> kit.Kernel:
    """A call of `function`, an int16 depthwise convolution. `spare`: channels that it reads beyond
    the last.
    """
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    channels = weights.shape[3]
    arguments = parts.cmsis_arguments(
        op,
        window,
        op.attributes.activation,
        scratch_bytes,
        filters=(weights.shape, kit.Packed("weights")),
        bias=kit.Packed("bias"),
        multiplicity=channels // x.shape[3],
    )
    filters = kit.constant_of(weights).reshape(-1, channels)
    stored = np.pad(filters.reshape(-1), (0, spare))
    return kit.Kernel(
        (kit.Call(function, arguments, status=True),),
        extents,
        constants=(
            kit.constant("weights", stored, "filters, height x width x channels"),
            *int16.per_channel(op, filters.T, spare),
        ),
        scratch_bytes=scratch_bytes,
        find_overlaps=overlaps,
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    return int16_extents(touched, 0, 0)


def int16_extents(touched: kit.Touched, spare: int, scratch_bytes: int) -> kit.Extents:
    """Of what `int16_kernel` gives."""
    call = touched.call
    x, y, filters = (shared.dims_of(call, name) for name in ("input", "output", "filter"))
    constants = int16.per_channel_bytes(y[3] + spare) | {"weights": math.prod(filters) + spare}
    most = shared.reach(call, "dw_conv_params")
    return kit.Extents(
        {0: shapes.image(x, 2)}, {0: shapes.image(y, 2)}, constants, scratch_bytes, most
    )
