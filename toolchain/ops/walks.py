"""How far an output must begin before its input so that a kernel overwrites nothing it still needs.

A kernel works in steps: each reads some input bytes and then writes a run of output bytes. Let W[t]
be the end of the bytes written up to step t, and R[t] the lowest input byte that is read after step
t. The output may begin `lead` bytes before the input if W[t] <= lead + R[t] for every t. A 1x1
convolution, for example, that turns pixels of 8 bytes into pixels of 4 bytes has a lead of 0; from
4 bytes to 8 the lead grows with the image.

`tests/host_c/test_traces.py` compares every lead with recorded reads and writes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.operator import AnyOperator
from toolchain.ops.window import Window

Int64 = NDArray[np.int64]

NEVER = 1 << 40
"""Stands for no pixel read. Multiplied by bytes it still fits int64."""


def run_ends(run: int, runs: int, group: int) -> Int64:
    """Where each step ends, in items, if a kernel takes `group` items at a time in each of `runs`
    runs of `run` items.

    With run=5, runs=2 and group=2: 2, 4, 5, 7, 9, 10.
    """
    one = np.minimum(np.arange(group, run + group, group), run)
    return (np.arange(runs)[:, None] * run + one).reshape(-1)


def read_after(lowest: Int64, ends: Int64) -> Int64:
    """For each step, the lowest byte that any later item reads. `lowest` has one entry per item."""
    following = np.full(len(lowest) + 1, NEVER, np.int64)
    np.minimum.accumulate(lowest[::-1], out=following[-2::-1])
    return following[ends]


def lead_bytes(written: Int64, still_read: Int64) -> int:
    """The smallest lead, at least 0, with written <= lead + still_read at every step."""
    return max(int((written - still_read).max(initial=0)), 0)


def first_taps(size: int, count: int, kernel: int, stride: int, dilation: int, pad: int) -> Int64:
    """For each window along one axis: its first position inside the image, or NEVER if there is
    none.
    """
    begin = np.arange(count, dtype=np.int64) * stride - pad
    skipped = np.maximum(-(begin // dilation), 0)
    taps = begin + skipped * dilation
    first: Int64 = np.where((skipped < kernel) & (taps < size), taps, NEVER)
    return first


def first_transposed_taps(size: int, count: int, kernel: int, stride: int, pad: int) -> Int64:
    """Along one axis of a transposed convolution: the first input that adds to each output, or
    NEVER.
    """
    end = np.arange(count, dtype=np.int64) + pad
    taps = np.maximum(-((kernel - 1 - end) // stride), 0)
    first: Int64 = np.where((taps * stride <= end) & (taps < size), taps, NEVER)
    return first


def first_pixels(size: tuple[int, int], rows: Int64, columns: Int64, batches: int = 1) -> Int64:
    """The first pixel that each window reads, counted row by row over all batches; NEVER if it
    reads none.

    `rows` and `columns` come from `first_taps`; `size` is the height and width of the image.
    """
    image = rows[:, None] * size[1] + columns
    outside = (rows[:, None] == NEVER) | (columns == NEVER)
    starts = np.arange(batches)[:, None] * (size[0] * size[1])
    pixels = starts + np.where(outside, 0, image).reshape(1, -1)
    return np.where(outside.reshape(1, -1), NEVER, pixels).reshape(-1)


def first_seen(op: AnyOperator, window: Window) -> Int64:
    """The first pixel of an operator's image that each output pixel's window sees, as
    `first_pixels`.
    """
    x, y, pads = op.x.shape, op.y.shape, (window.padding.top, window.padding.left)
    rows, columns = (
        first_taps(
            x[1 + i], y[1 + i], window.kernel[i], window.stride[i], window.dilation[i], pads[i]
        )
        for i in (0, 1)
    )
    return first_pixels((x[1], x[2]), rows, columns, x[0])
