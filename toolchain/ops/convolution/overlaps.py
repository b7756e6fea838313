"""Where a convolution's output may lie over its input: from the order in which its kernel walks.

Own kernels and CMSIS-NN's for Helium alike compute a few pixels at a time, all channels of them;
their output then follows the input at a distance of about the rows above the window's middle.
Depthwise kernels that finish one channel (or block of channels) before the next touch only that
channel's bytes, so they run in place as long as pixels fall on whole pixels: exactly in place.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.common import INPUT, WEIGHTS, Padding, Window
from toolchain.ops.convolution.lowering import (
    MVE_CHANNEL_BLOCK,
    conv2d_kernel,
    depthwise_kernel,
    waiting_rows,
    walks_columns,
)
from toolchain.ops.spec import SafeOverlap
from toolchain.ops.walks import (
    Int64,
    first_pixels,
    first_taps,
    first_transposed_taps,
    lead_bytes,
    read_after,
    run_ends,
)

_OWN_PIXELS, _HELIUM_PIXELS = 2, 4
"""How many pixels the kernels compute at once."""
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
    """The kernel copies the windows of a step's pixels before it writes them."""
    return lead_bytes(ends * output_bytes, read_after(firsts * input_bytes, ends))


def _direct_lead(firsts: Int64, run: int, runs: int, input_bytes: int, output_bytes: int) -> int:
    """`arm_nn_mat_mult_nt_t_s8` on Helium, which reads the image itself once for each channel.

    Four pixels at once: before the last channel is read all other channels are written. The
    remaining pixels of a run one by one: channels are written by fours.
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


def conv2d_overlaps(
    op: Op, graph: Graph, core: Core, window: Window, rounding: Rounding
) -> tuple[SafeOverlap, ...]:
    """The overlap of the kernel that `lower_conv2d` chooses; none for groups, which all go over
    the whole image."""
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    depth, channels = graph.input(op, WEIGHTS).shape[3], y[3]
    if depth != x[3]:
        return ()
    kernel = conv2d_kernel(op, graph, core, window, rounding)
    firsts, pixels = _first_pixels(op, graph, window), y[1] * y[2]
    if kernel == "thimble_convolve_1x1_s8":
        lead = _gathered_lead(firsts, run_ends(pixels * x[0], 1, _OWN_PIXELS), x[3], channels)
    elif kernel == "thimble_convolve_s4":
        lead = _gathered_lead(firsts, run_ends(pixels, x[0], 1), x[3], channels)
    elif kernel in ("thimble_convolve_s8", "thimble_convolve_inside_s8"):
        lead = _gathered_lead(firsts, run_ends(pixels, x[0], _OWN_PIXELS), x[3], channels)
    elif kernel == "arm_convolve_s8":
        lead = _gathered_lead(firsts, run_ends(pixels, x[0], _HELIUM_PIXELS), x[3], channels)
    elif kernel == "arm_convolve_1x1_s8":
        lead = _direct_lead(firsts, y[2], x[0] * y[1], x[3], channels)
    elif kernel == "arm_convolve_1x1_s8_fast":
        lead = _direct_lead(firsts, pixels * x[0], 1, x[3], channels)
    else:
        lead = _direct_lead(firsts, y[2], x[0], x[3], channels)
    return (SafeOverlap(INPUT, 0, lead),)


def gathered_overlap(
    op: Op, graph: Graph, window: Window, pixels: int, batches_join: bool = False
) -> tuple[SafeOverlap, ...]:
    """A kernel that gathers the windows of so many `pixels`, then writes them; any element type.

    `batches_join`: the last pixels of a batch may wait for the first of the next.
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


def depthwise_overlaps(
    op: Op, graph: Graph, core: Core, window: Window, rounding: Rounding
) -> tuple[SafeOverlap, ...]:
    """The overlap of the kernel that `lower_depthwise_conv2d` chooses.

    None where each of several channels has several filters: their outputs lie between inputs still
    needed.
    """
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    kernel = depthwise_kernel(op, graph, core, window, rounding)
    if kernel == "thimble_convolve_s8":
        ends = run_ends(y[1] * y[2], x[0], _OWN_PIXELS)
        lead = _gathered_lead(_first_pixels(op, graph, window), ends, x[3], y[3])
        return (SafeOverlap(INPUT, 0, lead),)
    if x[3] != y[3]:
        return ()
    if kernel == "arm_depthwise_conv_s8_opt":
        firsts, ends = _first_pixels(op, graph, window), run_ends(y[1] * y[2], 1, _HELIUM_PIXELS)
        lead = _gathered_lead(firsts, ends, x[3], x[3])
        if x[3] <= MVE_CHANNEL_BLOCK:
            return (SafeOverlap(INPUT, 0, lead),)
        return _in_whole_pixels(lead, x[3])
    rows = np.arange(1, y[1] + 1)
    if kernel == "thimble_depthwise_conv_fours_s8":
        behind = rows - 1 + waiting_rows(y[1], window)
        needed = np.where(behind < y[1], behind * window.stride[0] - window.padding.top, x[1])
        return _row_by_row(x, y, needed)
    if walks_columns(y, window):
        rows_fit = x[2] == y[2] and (x[0] == 1 or x[1] >= y[1])
        reads_ahead = window.extent[1] > window.padding.left
        return (SafeOverlap(INPUT, exact=True),) if rows_fit and reads_ahead else ()
    return _row_by_row(x, y, (rows - 1) * window.stride[0] + window.extent[0] - window.padding.top)


def _row_by_row(x: tuple[int, ...], y: tuple[int, ...], needed: Int64) -> tuple[SafeOverlap, ...]:
    """Channel by channel; `needed`: the first input row read after each output row is written."""
    unread = np.clip(needed, 0, x[1]) * x[2] + np.arange(x[0])[:, None] * (x[1] * x[2])
    rows = np.arange(1, x[0] * y[1] + 1)
    waiting = unread.reshape(-1) < x[0] * x[1] * x[2]
    lead = lead_bytes(rows[waiting] * y[2], unread.reshape(-1)[waiting])
    return _in_whole_pixels(lead * x[3], x[3])


def transpose_conv2d_overlaps(
    op: Op, graph: Graph, stride: tuple[int, int], padding: Padding
) -> tuple[SafeOverlap, ...]:
    """The input pixels that meet in an output pixel are gathered before it is written."""
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    kernel, pads = graph.input(op, WEIGHTS).shape[1:3], (padding.top, padding.left)
    rows, columns = (
        first_transposed_taps(x[1 + a], y[1 + a], kernel[a], stride[a], pads[a]) for a in (0, 1)
    )
    firsts = first_pixels((x[1], x[2]), rows, columns, x[0])
    ends = np.arange(1, len(firsts) + 1)
    return (SafeOverlap(INPUT, 0, _gathered_lead(firsts, ends, x[3], y[3])),)
