"""Kernels of int8 depthwise convolutions of 3x3, from lines of pixels in scratch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.convolution import extents, overlaps, terms
from toolchain.ops.convolution.common import window_of
from toolchain.ops.convolution.depthwise_walks import (
    Walk,
    along_walk,
    depthwise_by_blocks,
    ended,
    walked_depthwise,
)
from toolchain.ops.convolution.endings import CODE_ONCE, channel_endings
from toolchain.ops.convolution.kernel_parts import PLAIN, Sizes
from toolchain.ops.convolution.packing import Ending, Scaling, pack_depthwise_3x3
from toolchain.ops.convolution.structs import transposed_window
from toolchain.ops.kernel import Kernel
from toolchain.ops.window import Window

_BAND_FUNCTIONS = {1: "thimble_depthwise_3x3_band_s8", 2: "thimble_depthwise_3x3_band_step_2_s8"}
"""By the stride along rows."""


_LINES_BYTES = 448
"""The same of a kernel for windows of 3x3; as many as the kernels of other windows take."""


@dataclass(frozen=True)
class _Lines:
    """A way over the image for windows of 3x3: a walk, and whether it keeps bands of short lines or
    three lines that take turns.
    """

    walk: Walk
    band_line: int | None

    def form(self) -> str:
        """For a title that no other way has."""
        turned = " transposed" if self.walk.transposed else ""
        fours = " of four channels" if self.walk.at_once else ""
        return "" if self.band_line is None else f"{self.walk.band} rows{fours}{turned}"

    def function(self) -> str:
        turns = "thimble_depthwise_3x3_s8"
        return turns if self.band_line is None else _BAND_FUNCTIONS[self.walk.window.stride[1]]

    def scratch_bytes(self, output: Sizes) -> int:
        columns = output[1 if self.walk.transposed else 2]
        stride_h, stride_w = self.walk.window.stride
        if self.band_line is None:
            return extents.LINES_3X3 * extents.line_bytes_3x3(columns, stride_w)
        pitch = self.band_line * max(self.walk.at_once, 1)
        return pitch * ((self.walk.band - 1) * stride_h + extents.LINES_3X3)


def depthwise_3x3(op: Op, graph: Graph, window: Window, blocks: bool) -> Kernel:
    """Channel by channel, from lines in scratch: a band of short ones, the quicker the more rows it
    has, or three long ones by turns. `blocks`: whether the kernel for blocks of four channels takes
    the operator; with a stride of 2 it often takes the least scratch.
    """
    output, turns = graph.output(op).shape, _Lines(Walk(window, 1), None)
    ways = (*_bands(op, graph, blocks), turns)
    first = next((way for way in ways if way.scratch_bytes(output) <= _LINES_BYTES), turns)
    endings = ended(op, graph, channel_endings)
    lean = _depthwise_3x3_form(op, graph, window, first, endings)
    if blocks and first is turns:
        least = depthwise_by_blocks(op, graph, window)
        lean = least if least.scratch_bytes < lean.scratch_bytes else lean
    more = [way for way in ways if way.scratch_bytes(output) > lean.scratch_bytes]
    return replace(
        lean,
        roomier=cache(
            lambda: tuple(_depthwise_3x3_form(op, graph, window, way, endings) for way in more)
        ),
    )


def _bands(op: Op, graph: Graph, blocks: bool) -> Iterator[_Lines]:
    """The ways over an image for windows of 3x3 by bands of short lines, quickest first: those that
    make lines of four channels at once, if channels come in `blocks` of four, then the others.

    Rows and columns change places where that makes rows longer, but not too long for a band.
    """
    window, (_, rows, columns, _) = window_of(op, graph), graph.output(op).shape
    ways = ((extents.FOURS_LINES, extents.FOURS),) if blocks else ()
    for lengths, at_once in (*ways, (extents.BAND_LINES, 0)):
        transposed = rows > columns and window.stride == PLAIN
        if transposed and _band_line(rows, 1, lengths) is None:
            transposed = _band_line(columns, 1, lengths) is None
        walked = transposed_window(window) if transposed else window
        height, width = (columns, rows) if transposed else (rows, columns)
        line = _band_line(width, walked.stride[1], lengths)
        bands = {-(-height // count) for count in range(1, height + 1)}
        for band in sorted(bands, reverse=True) if line is not None else ():
            yield _Lines(Walk(walked, band, transposed, at_once), line)


def _depthwise_3x3_form(
    op: Op,
    graph: Graph,
    window: Window,
    lines: _Lines,
    endings: Callable[[], tuple[Scaling, Ending]],
) -> Kernel:
    """`endings`: as `ended` gives them, the same for all forms."""
    transposed = lines.walk.transposed

    def packed() -> Int32:
        scales, ending = endings()
        filters = along_walk(scales.filters, window, transposed)
        return pack_depthwise_3x3(replace(scales, filters=filters), ending)

    kernel = walked_depthwise(
        op,
        graph,
        lines.function(),
        lines.walk,
        packed,
        lines.scratch_bytes(graph.output(op).shape),
    )
    return replace(
        kernel,
        find_overlaps=lambda: overlaps.depthwise_line_overlaps(op, graph, window, transposed),
        find_terms=lambda: terms.depthwise_3x3_terms(
            op, graph, kernel.calls[0], _ways_to_end(op, endings()[1])
        ),
        form=lines.form(),
    )


def _ways_to_end(op: Op, ending: Ending) -> terms.Endings:
    path, slow = terms.slow_endings(op, ending)
    once = int((ending.code == CODE_ONCE).sum())
    return terms.Endings(once, len(slow) - once - int(slow.sum()), int(slow.sum()), path)


def _band_line(columns: int, stride: int, lengths: Sizes) -> int | None:
    """Bytes of the shortest line that holds so many columns; None if all are shorter."""
    seen = extents.line_bytes_3x3(columns, stride)
    return next((line for line in lengths if seen <= line), None)
