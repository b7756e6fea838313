"""Parts of the kernels of pools: the call of Thimble's int8 ones, overlaps, terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from toolchain.ops import kit, walks
from toolchain.ops.pooling.common import Pool2D, pool_window

Counts = dict[str, float]
ByChannels: TypeAlias = Callable[[int, float, int, int], Counts]
"""The terms of the loops over channels, from their number, the pixels, and the lines and taps of
all windows inside the image."""


def pool_kernel(
    op: kit.Operator[Pool2D],
    function: str,
    by_blocks: ByChannels,
    more: Mapping[str, kit.Argument] | None = None,
) -> kit.Kernel:
    """A call of `function`, one of Thimble's int8 pools, with `more` arguments after the first."""
    x, y, window = op.x.shape, op.y.shape, pool_window(op)
    low, high = kit.clamp_range(op.attributes.activation, op.y)
    params: dict[str, kit.Argument] = {
        "batches": x[0],
        **kit.sized("input", x[1:3]),
        **kit.sized("output", y[1:3]),
        "channels": x[3],
        **kit.sized("kernel", window.kernel),
        **kit.sized("stride", window.stride),
        "pad_top": window.padding.top,
        "pad_left": window.padding.left,
        "min": low,
        "max": high,
    }
    arguments: dict[str, kit.Argument] = {
        "params": kit.Struct("thimble_pool_params", params),
        **(more or {}),
        "input": kit.Input(0),
        "output": kit.Output(0),
    }

    def by_channels(channels: int, pixels: float, lines: int, taps: int) -> Counts:
        rest = channels % 4
        lone = {"lone": pixels * rest, "lone row": lines * rest, "lone tap": taps * rest}
        return lone | by_blocks(channels, pixels, lines, taps)

    return kit.Kernel(
        (kit.Call(function, arguments),),
        _extents,
        find_overlaps=lambda: pool_overlaps(op, reads_first=True),
        find_terms=lambda: pool_terms(op, by_channels),
    )


def pool_overlaps(op: kit.Operator[Pool2D], *, reads_first: bool) -> tuple[kit.SafeOverlap, ...]:
    """The overlap of a kernel that writes pixel by pixel (see `ops.walks`).

    No write may reach a pixel that the current window or a later one still reads. With
    `reads_first` the kernel reads a channel's whole window before it writes the result, so an
    output pixel may lie on the first pixel of its own window.
    """
    firsts = walks.first_seen(op, pool_window(op))
    pixels = np.arange(firsts.size)
    lead = max(
        walks.lead_bytes(pixels + 1, walks.read_after(firsts, pixels + 1)),
        walks.lead_bytes(pixels + (not reads_first), firsts),
    )
    return (kit.SafeOverlap(0, 0, lead * op.x.shape[3] * op.x.dtype.size_bytes),)


def _extents(touched: kit.Touched) -> kit.Extents:
    """Windows are clipped to the image."""
    call = touched.call
    each = call["params.batches"] * call["params.channels"]
    read, written = (
        each * math.prod(call[f"params.{image}_{axis}"] for axis in "hw")
        for image in ("input", "output")
    )
    return kit.Extents(
        {0: kit.whole(read)}, {0: kit.whole(written)}, largest=kit.reach_in(call, "params")
    )


def pool_terms(op: kit.Operator[Pool2D], by_channels: ByChannels) -> kit.Terms:
    """Pixels, the lines and the taps of their windows inside the image, by blocks of channels."""
    batches, channels = op.y.shape[0], op.y.shape[3]
    rows, columns = kit.walked(op.x.shape, op.y.shape, pool_window(op))
    pixels = batches * rows.windows * columns.windows
    lines, taps = batches * rows.taps * columns.windows, batches * rows.taps * columns.taps
    terms = {"call": 1.0, "row": batches * rows.windows, "pixel": pixels}
    return terms | by_channels(channels, pixels, lines, taps)


def block_terms(name: str, blocks: int, pixels: float, lines: int, taps: int) -> Counts:
    """Terms of so many blocks of channels of each pixel."""
    return {name: pixels * blocks, f"{name} row": lines * blocks, f"{name} tap": taps * blocks}
