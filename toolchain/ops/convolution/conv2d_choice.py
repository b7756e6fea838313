"""Choice of the kernel of an int8 conv2d, for each core.

Thimble's kernels are called "own" here. Cores with Helium get CMSIS-NN's (`cmsis_nn`) where their
preconditions hold and Thimble has none for vectors.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import cmsis_nn, parts
from toolchain.ops.convolution.common import (
    Convolution,
    filters_of,
    weight_zero_point,
    window_of,
)
from toolchain.ops.convolution.kernels import (
    blocks,
    thimble_convolve_1x1_s8,
    thimble_convolve_inside_s8,
    thimble_convolve_lanes_s8,
    thimble_convolve_packed_s8,
    thimble_convolve_s8,
)

_FOUR_BIT_TAPS, _FOUR_BIT_CHANNELS = 24, 8
"""From so many on (channels of a group), weights of four bits are convolved in at most 1.27 times
the cycles of those of eight bits, on a Cortex-M4, M33 and M7 and the slowest flash: with few taps
and channels, what each window takes more is not spread."""


def select_conv2d(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """The quicker kernel of an int8 conv2d: Thimble's, but on Helium CMSIS-NN's where Thimble's for
    vectors does not take the operator.
    """
    if _takes_lanes(op, core):
        return own_conv2d(op, core)
    return parts.quicker(cmsis_nn.conv2d, own_conv2d, op, core)


def own_conv2d(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """Thimble's kernel of an int8 conv2d, which takes any."""
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    window, depth = window_of(op), weights.shape[3]
    if _takes_lanes(op, core):
        return thimble_convolve_lanes_s8.kernel(op, window)
    plain = depth == x.shape[3] and weight_zero_point(weights) == 0
    width = blocks.FOUR_BITS if _four_bits_pay(op) else blocks.EIGHT_BITS
    if core.multiplies_alone and plain and width is blocks.EIGHT_BITS:
        return thimble_convolve_packed_s8.kernel(op, window)
    pointwise = window.kernel == parts.PLAIN and window.padding == kit.UNPADDED
    if pointwise and window.stride == parts.PLAIN and plain and depth % 4 == 0:
        return thimble_convolve_1x1_s8.kernel(op, window, width)
    runs = window.kernel[1] == 1 or window.dilation[1] == 1
    words = window.kernel[1] * depth % 4 == 0 and x.shape[0] == 1
    if runs and words and plain and window.padding == kit.UNPADDED:
        return thimble_convolve_inside_s8.kernel(op, window, width)
    return thimble_convolve_s8.kernel(op, window, width)


def one_channel_conv2d(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """Thimble's kernel for the depthwise convolution of an image of one channel, which is an
    ordinary one.
    """
    if core.mve:
        return thimble_convolve_lanes_s8.kernel(op, window_of(op))
    return thimble_convolve_s8.kernel(op, window_of(op))


def _takes_lanes(op: kit.AnyOperator, core: kit.Core) -> bool:
    """Whether the kernel for vectors of Helium takes a convolution."""
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    return core.mve and weights.shape[3] == x.shape[3]


def _four_bits_pay(op: kit.AnyOperator) -> bool:
    """Whether weights fit four bits, and packing them saves flash and costs little time."""
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    if weight_zero_point(weights):
        return False
    taps = kit.round_up(weights.elements // weights.shape[0], 4)
    channels = weights.shape[0] * weights.shape[3] // x.shape[3]  # of a group
    if taps < _FOUR_BIT_TAPS or channels < _FOUR_BIT_CHANNELS:
        return False
    packed = -(-channels // 4) * (14 + taps // 2)
    unpacked = -(-channels // 2) * (7 + taps // 2)
    return packed < unpacked and packing.fit_nibbles(filters_of(op))
