"""`thimble_convolve_s16`: any convolution of int16 images, with groups; sums in int64."""

from __future__ import annotations

from typing import Any

from toolchain.ops import kit
from toolchain.ops.convolution.kernels import int16

FUNCTION = "thimble_convolve_s16"
CODE_BYTES = {FUNCTION: kit.CodeBytes.CONVOLUTION}


def kernel(op: kit.Operator[Any], window: kit.Window) -> kit.Kernel:
    """The kernel of a conv2d. Raises as `per_channel`."""
    return int16.own_kernel(op, FUNCTION, window)


def depthwise(op: kit.Operator[Any], window: kit.Window) -> kit.Kernel:
    """The kernel of a depthwise_conv2d: groups of one channel, whose filters are packed."""
    weights = kit.constant_of(op.input(kit.WEIGHTS))
    rows = weights.reshape(-1, weights.shape[3]).T
    constants = (
        kit.constant("weights", rows.reshape(-1), "filters, channel x height x width"),
        *int16.per_channel(op, rows),
    )
    call = int16.own_call(op, FUNCTION, window, 1, kit.Packed("weights"))
    return kit.Kernel((call,), _packed_extents, constants=constants)


def _packed_extents(touched: kit.Touched) -> kit.Extents:
    return int16.own_extents(touched, {}, {"weights": int16.filter_bytes(touched.call)})
