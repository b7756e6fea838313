"""`thimble_convolve_packed_s8`: a convolution for cores that have no product of two pairs, with two
pixels in each word. It takes four pixels and four channels at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution, depth_of, filters_of
from toolchain.ops.convolution.kernels import shapes

FUNCTION = "thimble_convolve_packed_s8"
LARGEST_SUM, MOST_TAPS = 255, 9
"""The largest sum of magnitudes of a run, 128 times which is below 2**15, and its most taps."""
_HEAD_WORDS = 9
"""Words before the filters of a block: biases, multipliers and shift codes."""


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """The kernel of an operator without groups and a zero point of its weights."""
    filters = filters_of(op)
    taps, depth = filters.shape[1], depth_of(filters, window)
    scales = parts.scaled(op, filters)

    def call(lines: tuple[int, int]) -> kit.Call:
        return parts.own_call(op, FUNCTION, parts.conv_shape(op, window, depth, lines=lines))

    return parts.image_kernel(
        op,
        call,
        parts.parameters(op, FUNCTION, lambda: _packed(scales())),
        scratch_bytes=8 * taps + kit.round_up(depth, 4),
        extents=_extents,
        overlaps=lambda: overlaps.gathered_overlap(op, window, 4),
        terms=lambda: _terms(op, window, filters),
    )


def runs_of(filters: packing.Int8) -> tuple[int, ...]:
    """Where the runs of at most four channels [channels, taps] end: no sum of a channel's
    magnitudes in a run exceeds LARGEST_SUM.
    """
    sums = np.abs(filters.astype(np.int64)).cumsum(axis=1)
    ends, count = [0], filters.shape[1]
    while ends[-1] < count:
        begin = ends[-1]
        before = sums[:, begin - 1] if begin else np.zeros(len(sums), np.int64)
        window = sums[:, begin : begin + MOST_TAPS] - before[:, None]
        ends.append(begin + int((window <= LARGEST_SUM).all(axis=0).sum()))
    return tuple(ends[1:])


def _packed(scales: packing.Scaling) -> kit.Int32:
    biases, multipliers = packing.by_blocks(scales.bias, 4), packing.by_blocks(scales.multiplier, 4)
    codes = packing.as_words(packing.by_blocks(scales.code, 4))
    filters = packing.filled_up(scales.filters, 0, 4).reshape(-1, 4, scales.filters.shape[1])
    parts = []
    for block, taps in enumerate(filters.astype(np.int8)):
        ends = runs_of(taps)
        parts += [biases[block], multipliers[block], codes[block]]
        words = packing.as_words(np.ascontiguousarray(taps.T))[:, 0]
        for begin, end in zip((0, *ends), ends, strict=False):
            parts += [words[begin : begin + 1], [end - begin - 1], words[begin + 1 : end]]
    return np.concatenate(parts).astype(np.int32)


def _extents(touched: kit.Touched) -> kit.Extents:
    """The parameters say themselves how long they are."""
    call = touched.call
    words = _packed_words(
        touched.constants["parameters"], call["shape.output_c"], shapes.taps(call)
    )
    return shapes.extents_of_images(touched, 4 * words, 8 * shapes.taps(call) + call["shape.depth"])


def _packed_words(parameters: NDArray[np.generic], channels: int, taps: int) -> int:
    """Words that are read: runs until the taps of each four channels are complete."""
    at = 0
    for _ in range(-(-channels // 4)):
        at += _HEAD_WORDS
        left = taps
        while left > 0 and at + 1 < parameters.size:
            count = 1 + int(parameters.reshape(-1)[at + 1])
            at += 1 + count
            left -= count
    return at


def _terms(op: kit.AnyOperator, window: kit.Window, filters: packing.Int8) -> kit.Terms:
    """Loops over `filters` [channels, taps]. There are as many runs as the largest sum of
    magnitudes in a block needs, and as the longest runs leave; more than these where sums do not
    come out even.
    """
    batches, out_h, out_w, channels = op.y.shape
    taps, depth = filters.shape[1], op.input(kit.WEIGHTS).shape[3]
    sums = np.abs(filters.astype(np.int16)).sum(axis=1, dtype=np.int64)
    largest = np.maximum.reduceat(sums, np.arange(0, channels, 4))
    runs = float(np.maximum(largest / LARGEST_SUM, taps / MOST_TAPS).sum())
    fours = batches * -(-out_h * out_w // 4)
    outputs = batches * out_h * out_w * channels
    blocks = -(-channels // 4)
    path, slow = kit.slow_channels(op)
    slow_outputs = batches * out_h * out_w * int(slow.sum())
    rows, columns = kit.walked(op.x.shape, op.y.shape, window)
    whole_rows = window.dilation[1] == 1 or window.kernel[1] == 1
    whole = columns.whole * rows.taps if whole_rows else 0
    pieces = whole + (rows.windows * columns.windows * window.kernel[0] - whole) * window.kernel[1]
    return {
        "call": 1.0,
        "four pixels": fours,
        "piece": batches * pieces / 2,
        "four taps of two pixels": batches * pieces / 2 * (depth // 4),
        "tap of two pixels": 2 * fours * taps,
        "block": fours * blocks,
        "run": fours * runs,
        "block tap": fours * blocks * taps,
        "output": outputs - slow_outputs,
        f"{path} output": slow_outputs,
        "narrow output": outputs * kit.is_narrow(op),
    }
