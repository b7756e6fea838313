"""`thimble_convolve_s16`: any convolution of int16 images, with groups; sums in int64."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.kernels.int16 import (
    filter_bytes,
    own_call,
    own_extents,
    own_kernel,
    per_channel,
)
from toolchain.ops.weighted import WEIGHTS, constant_of
from toolchain.ops.window import Window

FUNCTION = "thimble_convolve_s16"


def kernel(op: kit.AnyOperator, window: Window, activation: Activation) -> kit.Kernel:
    """Of a conv2d. Raises as `per_channel`."""
    return own_kernel(op, FUNCTION, window, activation)


def depthwise(op: kit.AnyOperator, window: Window, activation: Activation) -> kit.Kernel:
    """Of a depthwise_conv2d: groups of one channel, whose filters are packed."""
    weights = constant_of(op.input(WEIGHTS))
    rows = weights.reshape(-1, weights.shape[3]).T
    constants = (
        kit.constant("weights", rows.reshape(-1), "filters, channel x height x width"),
        *per_channel(op, rows),
    )
    call = own_call(op, FUNCTION, window, activation, 1, kit.Packed("weights"))
    return kit.Kernel((call,), _packed_extents, constants=constants)


def _packed_extents(touched: kit.Touched) -> kit.Extents:
    return own_extents(touched, {}, {"weights": filter_bytes(touched.call)})
