"""Where a convolution's output may lie over its input, by the order in which its kernel works.

Most kernels compute a few pixels at a time, in all channels. Their output may follow the input at a
distance of about the rows above the window's middle (`ops.walks`). Depthwise kernels that finish
one channel, or one block of channels, before the next touch the bytes of that channel alone; they
run in place if each output pixel lies exactly on an input pixel.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from toolchain.ir import Graph, Op
from toolchain.ops.convolution.common import INPUT, WEIGHTS
from toolchain.ops.convolution.extents import MVE_CHANNEL_BLOCK
from toolchain.ops.kernel import SafeOverlap
from toolchain.ops.walks import (
    Int64,
    first_pixels,
    first_taps,
    first_transposed_taps,
    lead_bytes,
    read_after,
    run_ends,
)
from toolchain.ops.window import Padding, Window

_HELIUM_PIXELS = 4
"""How many pixels CMSIS-NN's kernels for Helium compute at once."""
_WORD = 4


def _first_pixels(op: Op, graph: Graph, window: Window) -> Int64:
    """The first input pixel that each output pixel's window sees."""
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    rows, columns = (
        first_taps(
            x[1 + axis],
            y[1 + axis],
            window.kernel[axis],
            window.stride[axis],
            window.dilation[axis],
            (window.padding.top, window.padding.left)[axis],
        )
        for axis in (0, 1)
    )
    return first_pixels((x[1], x[2]), rows, columns, x[0])


def _gathered_lead(firsts: Int64, ends: Int64, input_bytes: int, output_bytes: int) -> int:
    """The lead of a kernel that copies the windows of a step's pixels before it writes them."""
    return lead_bytes(ends * output_bytes, read_after(firsts * input_bytes, ends))


def _direct_lead(firsts: Int64, run: int, runs: int, input_bytes: int, output_bytes: int) -> int:
    """The lead of `arm_nn_mat_mult_nt_t_s8` on Helium, which reads the image again for each
    channel.

    It computes four pixels at once: before it reads the last channel, all others are written. The
    remaining pixels of a run come one by one, four channels at a time.
    """
    lead = 0
    ends = run_ends(run, runs, _HELIUM_PIXELS)
    starts = np.append(0, ends[:-1])
    full = ends - starts == _HELIUM_PIXELS
    if full.any() and output_bytes > 1:
        lowest = np.minimum.reduceat(firsts, starts)[full]
        lead = lead_bytes(ends[full] * output_bytes - 1, lowest * input_bytes)
    rest = np.flatnonzero(np.arange(run * runs) % run >= run // _HELIUM_PIXELS * _HELIUM_PIXELS)
    early = (output_bytes - 1) // _WORD * _WORD
    if early:
        lead = max(lead, lead_bytes(rest * output_bytes + early, firsts[rest] * input_bytes))
    steps = np.union1d(ends[full], rest + 1)
    return max(lead, _gathered_lead(firsts, steps, input_bytes, output_bytes))


def own_conv_overlaps(
    op: Op, graph: Graph, function: str, window: Window, depth: int, at_once: int
) -> tuple[SafeOverlap, ...]:
    """Of Thimble's own kernels, which compute `at_once` pixels together. None for groups,
    which each read the whole image.

    `depth` is the number of input channels that a filter reads.
    """
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    if depth != x[3]:
        return ()
    pixels, batches = y[1] * y[2], x[0]
    if function.startswith("thimble_convolve_1x1_"):
        pixels, batches = pixels * batches, 1
    ends = run_ends(pixels, batches, at_once)
    return (
        SafeOverlap(INPUT, 0, _gathered_lead(_first_pixels(op, graph, window), ends, x[3], y[3])),
    )


def helium_conv_overlaps(
    op: Op, graph: Graph, function: str, window: Window
) -> tuple[SafeOverlap, ...]:
    """Of CMSIS-NN's kernels for Helium."""
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    firsts, pixels = _first_pixels(op, graph, window), y[1] * y[2]
    if function == "arm_convolve_s8":
        ends = run_ends(pixels, x[0], _HELIUM_PIXELS)
        lead = _gathered_lead(firsts, ends, x[3], y[3])
    elif function == "arm_convolve_1x1_s8":
        lead = _direct_lead(firsts, y[2], x[0] * y[1], x[3], y[3])
    elif function == "arm_convolve_1x1_s8_fast":
        lead = _direct_lead(firsts, pixels * x[0], 1, x[3], y[3])
    else:
        lead = _direct_lead(firsts, y[2], x[0], x[3], y[3])
    return (SafeOverlap(INPUT, 0, lead),)


def gathered_overlap(
    op: Op, graph: Graph, window: Window, pixels: int, batches_join: bool = False
) -> tuple[SafeOverlap, ...]:
    """Of a kernel, of any element type, that gathers the windows of `pixels` pixels and then writes
    them.

    With `batches_join` the last pixels of one batch may wait for the first of the next.
    """
    x, y = graph.input(op, INPUT), graph.output(op)
    batches, image = y.shape[0], y.shape[1] * y.shape[2]
    run, runs = (image * batches, 1) if batches_join else (image, batches)
    size = x.dtype.size_bytes
    firsts, ends = _first_pixels(op, graph, window), run_ends(run, runs, pixels)
    lead = _gathered_lead(firsts, ends, x.shape[3] * size, y.shape[3] * size)
    return (SafeOverlap(INPUT, 0, lead),)


def _in_whole_pixels(lead: int, channels: int) -> tuple[SafeOverlap, ...]:
    """Channel by channel: whole pixels apart, and by as many as keep tensors on words."""
    unit = channels * _WORD // gcd(channels, _WORD)
    return (SafeOverlap(INPUT, 0, -(-lead // unit) * unit, exact=True),)


def helium_depthwise_overlaps(op: Op, graph: Graph, window: Window) -> tuple[SafeOverlap, ...]:
    """Of `arm_depthwise_conv_s8_opt`, which takes blocks of MVE_CHANNEL_BLOCK channels."""
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    firsts, ends = _first_pixels(op, graph, window), run_ends(y[1] * y[2], 1, _HELIUM_PIXELS)
    lead = _gathered_lead(firsts, ends, x[3], x[3])
    if x[3] <= MVE_CHANNEL_BLOCK:
        return (SafeOverlap(INPUT, 0, lead),)
    return _in_whole_pixels(lead, x[3])


def channel_block_overlaps(
    op: Op, graph: Graph, window: Window, waiting: int
) -> tuple[SafeOverlap, ...]:
    """Of `thimble_depthwise_conv_blocks_s8`, which keeps `waiting` rows before it
    writes the first.
    """
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    behind = np.arange(y[1]) + waiting
    needed = np.where(behind < y[1], behind * window.stride[0] - window.padding.top, x[1])
    return _row_by_row(x, y, needed)


def depthwise_line_overlaps(
    op: Op, graph: Graph, window: Window, transposed: bool
) -> tuple[SafeOverlap, ...]:
    """Of `thimble_depthwise_conv_s8`. `window` is the operator's, even if the kernel works
    `transposed`.

    None if there are several channels with several filters each: their outputs would lie between
    inputs that are still read.
    """
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    if x[3] != y[3]:
        return ()
    if transposed:
        rows_fit = x[2] == y[2] and (x[0] == 1 or x[1] >= y[1])
        reads_ahead = window.extent[1] > window.padding.left
        return (SafeOverlap(INPUT, exact=True),) if rows_fit and reads_ahead else ()
    rows = np.arange(y[1])
    return _row_by_row(x, y, rows * window.stride[0] + window.extent[0] - window.padding.top)


def _row_by_row(x: tuple[int, ...], y: tuple[int, ...], needed: Int64) -> tuple[SafeOverlap, ...]:
    """Channel by channel; `needed`: the first input row read after each output row is written."""
    unread = np.clip(needed, 0, x[1]) * x[2] + np.arange(x[0])[:, None] * (x[1] * x[2])
    rows = np.arange(1, x[0] * y[1] + 1)
    waiting = unread.reshape(-1) < x[0] * x[1] * x[2]
    lead = lead_bytes(rows[waiting] * y[2], unread.reshape(-1)[waiting])
    return _in_whole_pixels(lead * x[3], x[3])


def transpose_conv2d_overlaps(
    op: Op, graph: Graph, stride: tuple[int, int], padding: Padding, *, by_rows: bool = False
) -> tuple[SafeOverlap, ...]:
    """Of `thimble_transpose_conv_s8`, which gathers the inputs of an output pixel before it writes
    it. `by_rows`: of `_lanes_s8`, which writes outputs of a row before it gathers others of it.
    """
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    kernel, pads = graph.input(op, WEIGHTS).shape[1:3], (padding.top, padding.left)
    rows, columns = (
        first_transposed_taps(x[1 + a], y[1 + a], kernel[a], stride[a], pads[a]) for a in (0, 1)
    )
    firsts = first_pixels((x[1], x[2]), rows, columns, x[0])
    if by_rows:
        starts = np.arange(0, len(firsts), y[2])
        lead = lead_bytes((starts + y[2]) * y[3], read_after(firsts * x[3], starts))
        return (SafeOverlap(INPUT, 0, lead),)
    ends = np.arange(1, len(firsts) + 1)
    return (SafeOverlap(INPUT, 0, _gathered_lead(firsts, ends, x[3], y[3])),)
