"""Leads: how far below its input an output may begin without overwriting bytes still to be read.

A kernel is described as steps that each write a run of output bytes, and by the lowest input byte
that it reads from some moment on. Let W[t] be the end of what is written up to step t, and R[t] the
lowest byte that is still read after a write of step t. The output may begin `lead` bytes before the
input if W[t] <= lead + R[t] for all t. Example: a kernel that reads each byte before it writes the
same one has W[t] = R[t], so its lead is 0 (in place). `tests/host_c/test_traces.py` checks every
lead against recorded reads and writes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]

NEVER = 1 << 40
"""Stands for no pixel read. Multiplied by bytes it still fits int64."""


def run_ends(run: int, runs: int, group: int) -> Int64:
    """Ends of the steps of a kernel that processes `group` items at once, in each of `runs`
    runs.
    """
    one = np.minimum(np.arange(group, run + group, group), run)
    return (np.arange(runs)[:, None] * run + one).reshape(-1)


def read_after(lowest: Int64, ends: Int64) -> Int64:
    """For every step, the lowest byte that a later item reads. `lowest`: the lowest byte of each
    item.
    """
    following = np.full(len(lowest) + 1, NEVER, np.int64)
    np.minimum.accumulate(lowest[::-1], out=following[-2::-1])
    return following[ends]


def lead_bytes(written: Int64, still_read: Int64) -> int:
    """The smallest lead of at least 0 with written <= lead + still_read."""
    return max(int((written - still_read).max(initial=0)), 0)


def first_taps(size: int, count: int, kernel: int, stride: int, dilation: int, pad: int) -> Int64:
    """Along one axis: the first position inside the image that each window reads, or NEVER."""
    begin = np.arange(count, dtype=np.int64) * stride - pad
    skipped = np.maximum(-(begin // dilation), 0)
    taps = begin + skipped * dilation
    first: Int64 = np.where((skipped < kernel) & (taps < size), taps, NEVER)
    return first


def first_transposed_taps(size: int, count: int, kernel: int, stride: int, pad: int) -> Int64:
    """Along one axis: the first input position that adds to each output position, or NEVER."""
    end = np.arange(count, dtype=np.int64) + pad
    taps = np.maximum(-((kernel - 1 - end) // stride), 0)
    first: Int64 = np.where((taps * stride <= end) & (taps < size), taps, NEVER)
    return first


def first_pixels(size: tuple[int, int], rows: Int64, columns: Int64, batches: int = 1) -> Int64:
    """The first pixel (row-major, over all batches) that every window of an image reads.

    `rows` and `columns` are as `first_taps` returns them; `size` is the image's height and width.
    """
    image = rows[:, None] * size[1] + columns
    outside = (rows[:, None] == NEVER) | (columns == NEVER)
    starts = np.arange(batches)[:, None] * (size[0] * size[1])
    pixels = starts + np.where(outside, 0, image).reshape(1, -1)
    return np.where(outside.reshape(1, -1), NEVER, pixels).reshape(-1)
