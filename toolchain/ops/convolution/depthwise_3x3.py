"""Ways over an image for int8 depthwise convolutions of 3x3: which is the leanest, and which are
quicker where there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.endings import channel_endings
from toolchain.ops.convolution.kernels import (
    thimble_depthwise_3x3_band_s8,
    thimble_depthwise_3x3_s8,
    thimble_depthwise_conv_blocks_s8,
    walks,
)
from toolchain.ops.convolution.kernels.thimble_depthwise_3x3_band_s8 import (
    FOURS,
    line_of,
    scratch_bytes,
)

_LINES_BYTES = 448
"""Scratch in bytes that a kernel may always take; as many as those of other windows take."""


@dataclass(frozen=True)
class _Way:
    """A kernel that is made when it is wanted."""

    scratch_bytes: int
    kernel: Callable[[], kit.Kernel]


def depthwise_3x3(op: kit.Operator[Convolution], window: kit.Window, blocks: bool) -> kit.Kernel:
    """Channel by channel, from lines in scratch: a band of short ones, the quicker the more rows it
    has, or three long ones by turns. `blocks`: whether the kernel for blocks of four channels takes
    the operator; with a stride of 2 it often takes the least scratch.
    """
    output, endings = op.y.shape, walks.ended(op, channel_endings)
    in_turn = _Way(
        thimble_depthwise_3x3_s8.scratch_bytes(output[2], window.stride[1]),
        lambda: thimble_depthwise_3x3_s8.kernel(op, window, endings),
    )

    def by_bands(walk: walks.Walk) -> _Way:
        return _Way(
            scratch_bytes(walk, output),
            lambda: thimble_depthwise_3x3_band_s8.kernel(op, walk, endings),
        )

    ways = (*map(by_bands, _bands(op, window, blocks)), in_turn)
    first = next((way for way in ways if way.scratch_bytes <= _LINES_BYTES), in_turn)
    lean = first.kernel()
    if blocks and first is in_turn:
        least = thimble_depthwise_conv_blocks_s8.kernel(op, window)
        lean = least if least.scratch_bytes < lean.scratch_bytes else lean
    more = [way for way in ways if way.scratch_bytes > lean.scratch_bytes]
    return replace(lean, more_scratch=cache(lambda: tuple(way.kernel() for way in more)))


def _bands(op: kit.AnyOperator, window: kit.Window, blocks: bool) -> Iterator[walks.Walk]:
    """The ways over an image by bands of short lines, quickest first: those that make lines of four
    channels at once, if channels come in `blocks` of four, then the others.

    Rows and columns change places where that makes rows longer, but not too long for a band.
    """
    _, rows, columns, _ = op.y.shape
    for at_once in (FOURS, 0) if blocks else (0,):
        transposed = rows > columns and window.stride == parts.PLAIN
        if transposed and line_of(rows, 1, at_once) is None:
            transposed = line_of(columns, 1, at_once) is None
        walked = parts.transposed_window(window) if transposed else window
        height, width = (columns, rows) if transposed else (rows, columns)
        fits = line_of(width, walked.stride[1], at_once) is not None
        counts = {-(-height // count) for count in range(1, height + 1)}
        for band in sorted(counts, reverse=True) if fits else ():
            yield walks.Walk(walked, band, transposed, at_once)
