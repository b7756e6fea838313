"""Where a convolution's output may lie over its input, by the order in which its kernel works.

Most kernels compute a few pixels at a time, in all channels. Their output may follow the input at a
distance of about the rows above the window's middle (`ops.walks`). Depthwise kernels that finish
one channel, or one block of channels, before the next touch the bytes of that channel alone; they
run in place if each output pixel lies exactly on an input pixel.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from toolchain.ops import kit, walks

_WORD = 4


def gathered_lead(
    firsts: walks.Int64, ends: walks.Int64, input_bytes: int, output_bytes: int
) -> int:
    """The lead of a kernel that copies the windows of a step's pixels before it writes them."""
    return walks.lead_bytes(ends * output_bytes, walks.read_after(firsts * input_bytes, ends))


def gathered_overlap(
    op: kit.AnyOperator, window: kit.Window, pixels: int, batches_join: bool = False
) -> tuple[kit.SafeOverlap, ...]:
    """The overlap of a kernel, of any element type, that gathers the windows of `pixels` pixels and
    then writes them.

    With `batches_join` the last pixels of one batch may wait for the first of the next.
    """
    x, y = op.input(kit.INPUT), op.y
    batches, image = y.shape[0], y.shape[1] * y.shape[2]
    run, runs = (image * batches, 1) if batches_join else (image, batches)
    size = x.dtype.size_bytes
    firsts, ends = walks.first_seen(op, window), walks.run_ends(run, runs, pixels)
    lead = gathered_lead(firsts, ends, x.shape[3] * size, y.shape[3] * size)
    return (kit.SafeOverlap(kit.INPUT, 0, lead),)


def in_whole_pixels(lead: int, channels: int) -> tuple[kit.SafeOverlap, ...]:
    """Channel by channel: whole pixels apart, and by as many as keep tensors on words."""
    unit = channels * _WORD // gcd(channels, _WORD)
    return (kit.SafeOverlap(kit.INPUT, 0, -(-lead // unit) * unit, exact=True),)


def channel_block_overlaps(
    op: kit.AnyOperator, window: kit.Window, waiting: int
) -> tuple[kit.SafeOverlap, ...]:
    """The overlap of a kernel that takes block of channels by block, and keeps `waiting` rows
    before it writes the first.
    """
    x, y = op.input(kit.INPUT).shape, op.y.shape
    behind = np.arange(y[1]) + waiting
    needed = np.where(behind < y[1], behind * window.stride[0] - window.padding.top, x[1])
    return _row_by_row(x, y, needed)


def line_overlaps(
    op: kit.AnyOperator, window: kit.Window, transposed: bool
) -> tuple[kit.SafeOverlap, ...]:
    """The overlap of a kernel that takes channel by channel. `window` is the operator's, even if
    the kernel works `transposed`.

    None if there are several channels with several filters each: their outputs would lie between
    inputs that are still read.
    """
    x, y = op.input(kit.INPUT).shape, op.y.shape
    if x[3] != y[3]:
        return ()
    if transposed:
        rows_fit = x[2] == y[2] and (x[0] == 1 or x[1] >= y[1])
        reads_ahead = window.extent[1] > window.padding.left
        return (kit.SafeOverlap(kit.INPUT, exact=True),) if rows_fit and reads_ahead else ()
    rows = np.arange(y[1])
    return _row_by_row(x, y, rows * window.stride[0] + window.extent[0] - window.padding.top)


def _row_by_row(
    x: tuple[int, ...], y: tuple[int, ...], needed: walks.Int64
) -> tuple[kit.SafeOverlap, ...]:
    """Channel by channel; `needed`: the first input row read after each output row is written."""
    unread = np.clip(needed, 0, x[1]) * x[2] + np.arange(x[0])[:, None] * (x[1] * x[2])
    rows = np.arange(1, x[0] * y[1] + 1)
    waiting = unread.reshape(-1) < x[0] * x[1] * x[2]
    lead = walks.lead_bytes(rows[waiting] * y[2], unread.reshape(-1)[waiting])
    return in_whole_pixels(lead * x[3], x[3])
