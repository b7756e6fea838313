"""Choice of the kernel of an int8 depthwise_conv2d, for each core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from toolchain.ops import kit
from toolchain.ops.convolution import cmsis_nn, parts
from toolchain.ops.convolution.common import Convolution, Windowed, weight_zero_point, window_of
from toolchain.ops.convolution.conv2d_choice import one_channel_conv2d
from toolchain.ops.convolution.depthwise_3x3 import depthwise_3x3
from toolchain.ops.convolution.kernels import (
    thimble_depthwise_conv_blocks_s8,
    thimble_depthwise_conv_s8,
    thimble_depthwise_lanes_s8,
    thimble_depthwise_windows_lanes_s8,
)

_COLUMN_BY_LINES, _ODD_COLUMN_BY_LINES = 8, 10
"""From this many output rows on, images one pixel wide take fewer cycles row by row of one channel
than by blocks of four channels; the latter where assembly computes the blocks: windows of an odd
number of rows up to `_ODD_ROWS`. By the models of Cortex-M4, M33 and M7, of 2 to 29 rows."""
_ODD_ROWS = 7
"""The most rows of a window that `thimble_depthwise_odd_block_s8` computes."""
_MOST_STRIDE = 2
"""The largest stride along rows with which row by row four outputs are computed at once."""
_PRODUCTS_BY_LINES = 220
"""From this many products of a channel on, such rows take fewer cycles than blocks where an
instruction has two products. By the models of Cortex-M4 and M7, of 1 to 2,304 outputs and windows
of up to 8x8."""


_COLUMNS_BY_LANES = 12
"""From this many output columns on, Thimble's depthwise kernel for Helium, four outputs of a row at
a time, takes fewer cycles than CMSIS-NN's. By the model of a Cortex-M55."""


def select_depthwise(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """The quicker kernel of an int8 depthwise_conv2d: Thimble's, but on Helium CMSIS-NN's function
    for four channels at a time where it takes the operator and Thimble's for vectors does not, or
    would be the slower.
    """
    window, columns = window_of(op), op.y.shape[2]
    quick = _fits_vector(window) or columns >= _COLUMNS_BY_LANES
    if quick and _takes_depthwise_lanes(op, core):
        return own_depthwise(op, core)
    return parts.quicker(cmsis_nn.blocked_depthwise, own_depthwise, op, core)


def own_depthwise(op: kit.Operator[Convolution], core: kit.Core) -> kit.Kernel:
    """Thimble's kernel of an int8 depthwise_conv2d.

    An image of one channel goes to the kernel of an ordinary convolution, which is quicker. Windows
    of 3x3 have kernels of their own, which take fewer cycles than the others at every depthwise
    shape of MLPerf Tiny, on Cortex-M4 and M7. A multiple of four channels goes to the kernel for
    blocks of four channels, which reads the image in place. Other numbers of channels are computed
    channel by channel, from rows that are copied to scratch; so are images one pixel wide, and on
    cores with the DSP extension all that have many products, where there is room for the rows.
    """
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    window, channels = window_of(op), weights.shape[3]
    if x.shape[3] == 1:
        return one_channel_conv2d(op, core)
    if _takes_depthwise_lanes(op, core):
        if _fits_vector(window):
            return thimble_depthwise_windows_lanes_s8.kernel(op, window)
        return thimble_depthwise_lanes_s8.kernel(op, window)
    blocks = channels == x.shape[3] and channels % 4 == 0 and weight_zero_point(weights) == 0
    if window.kernel == (3, 3) and window.dilation == parts.PLAIN and window.stride[1] <= 2:
        quick = depthwise_3x3(op, window, blocks)
        return replace(quick, smaller=cache(lambda: tuple(_of_any_window(op, window, blocks))))
    if not blocks:
        return thimble_depthwise_conv_s8.kernel(op, window)
    by_blocks = thimble_depthwise_conv_blocks_s8.kernel(op, window)
    if not _by_lines(op, window, core):
        return by_blocks
    by_lines = thimble_depthwise_conv_s8.kernel(op, window)
    if by_lines.scratch_bytes <= by_blocks.scratch_bytes:
        return by_lines
    return replace(by_blocks, more_scratch=lambda: (*by_lines.more_scratch(), by_lines))


def _of_any_window(
    op: kit.Operator[Convolution], window: kit.Window, blocks: bool
) -> Iterator[kit.Kernel]:
    """The kernels that a window of 3x3 may share with other windows."""
    if blocks:
        yield thimble_depthwise_conv_blocks_s8.kernel(op, window)
    yield thimble_depthwise_conv_s8.kernel(op, window)


def _by_lines(op: kit.AnyOperator, window: kit.Window, core: kit.Core) -> bool:
    """Whether rows of one channel are quicker than blocks of four, where both are possible."""
    _, rows, columns, _ = op.y.shape
    (height, width), stride = window.kernel, window.stride
    if window.dilation != parts.PLAIN:
        return False
    if columns == 1:
        odd = core.dsp and height % 2 == 1 and height <= _ODD_ROWS
        least = _ODD_COLUMN_BY_LINES if odd else _COLUMN_BY_LINES
        return stride == parts.PLAIN and rows >= least
    work = rows * columns * height * width
    return core.dsp and stride[1] <= _MOST_STRIDE and work >= _PRODUCTS_BY_LINES


def _takes_depthwise_lanes(op: kit.Operator[Windowed], core: kit.Core) -> bool:
    """Whether the kernel for vectors of Helium takes a depthwise convolution."""
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    fours = weights.shape[3] == x.shape[3] and x.shape[3] % 4 == 0
    plain = window_of(op).dilation == parts.PLAIN and weight_zero_point(weights) == 0
    return core.mve and fours and plain


def _fits_vector(window: kit.Window) -> bool:
    """Whether one vector of Helium holds the window of a channel."""
    return max(window.kernel) <= thimble_depthwise_windows_lanes_s8.SIDE
