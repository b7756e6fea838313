"""Kernels of int8 depthwise convolutions that take windows of any size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import clamp_range
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.convolution import extents, overlaps, terms
from toolchain.ops.convolution.common import WEIGHTS, constant_of, convolution_of, weight_zero_point
from toolchain.ops.convolution.endings import raised_endings
from toolchain.ops.convolution.kernel_parts import (
    own_requant,
    packed_comment,
    scaled,
    strided_image,
)
from toolchain.ops.convolution.packing import Ending, Int8, pack_depthwise, pack_raised_blocks
from toolchain.ops.convolution.structs import conv_shape, own_arguments, transposed_window
from toolchain.ops.extents import round_up
from toolchain.ops.kernel import Call, Constant, Kernel
from toolchain.ops.window import Window

_BAND_BYTES = 640
"""Scratch in bytes that a depthwise kernel may always take; one output row may need more."""


_TRANSPOSED = "Height and width are swapped below: the kernel walks the image transposed."


@dataclass(frozen=True)
class Walk:
    """How an own depthwise kernel goes over the image: `band` output rows at a time.

    `transposed`: rows are columns, in `window` too. `at_once`: channels whose lines are made
    together, if not 0.
    """

    window: Window
    band: int
    transposed: bool = False
    at_once: int = 0


def channel_filters(op: Op, graph: Graph) -> Int8:
    """Depthwise filters as [channels, height * width]."""
    weights = graph.input(op, WEIGHTS)
    return constant_of(weights).reshape(-1, weights.shape[3]).T.astype(np.int8, copy=False)


def waiting_rows(rows: int, window: Window) -> int:
    """How many of `rows` output rows the depthwise kernel for channel blocks keeps before it writes
    the first.

    By then nothing reads the input rows that an output in the input's place overwrites.
    """
    return min(rows, -(-(window.padding.top + 1) // window.stride[0]))


def walked_depthwise(
    op: Op,
    graph: Graph,
    function: str,
    walk: Walk,
    pack: Callable[[], Int32],
    scratch_bytes: int,
) -> Kernel:
    """The kernel of a walk, without overlaps and cost terms; `pack` gives its parameters."""

    def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
        shape = conv_shape(
            op,
            graph,
            walk.window,
            depth=1,
            lines=(input_line, output_line),
            band=walk.band,
            at_once=walk.at_once,
            transposed=walk.transposed,
        )
        note = _TRANSPOSED if walk.transposed else ""
        return (Call(function, own_arguments(shape, own_requant(op, graph)), note=note),)

    comment = packed_comment("filters", graph.input(op, WEIGHTS).shape, function)
    return Kernel(
        calls(0, 0),
        extents.own_depthwise,
        constants=(Constant("parameters", pack, comment),),
        scratch_bytes=scratch_bytes,
        strided=strided_image(op, graph),
        calls_with_gaps=calls,
    )


def raised(
    op: Op, graph: Graph, filters: Int8, pack: Callable[[Int8, Ending], Int32]
) -> Callable[[], Int32]:
    """The parameters of `raised_endings`, packed when the returned function is called."""
    scales, y = scaled(op, graph, filters), graph.output(op)
    clamp = clamp_range(convolution_of(op).activation, y)
    zero_point = weight_zero_point(graph.input(op, WEIGHTS))

    def packed() -> Int32:
        found = scales()
        ending = raised_endings(found, y.q.zero_point, clamp, zero_point)
        return pack(found.filters, ending)

    return packed


def depthwise_by_blocks(op: Op, graph: Graph, window: Window) -> Kernel:
    """Blocks of four channels."""
    y, (height, width) = graph.output(op), window.kernel
    band = waiting_rows(y.shape[1], window)
    seen = (min(y.shape[2], extents.EDGE_OUTPUTS) - 1) * window.stride[1] + window.extent[1]
    filters = channel_filters(op, graph)
    kernel = walked_depthwise(
        op,
        graph,
        "thimble_depthwise_conv_blocks_s8",
        Walk(window, band),
        raised(op, graph, filters, pack_raised_blocks),
        64 + 8 * height * width + 4 * height * seen + 4 * band * y.shape[2],
    )
    return replace(
        kernel,
        find_overlaps=lambda: overlaps.channel_block_overlaps(op, graph, window, band),
        find_terms=lambda: terms.channel_block_terms(op, graph, window),
    )


def depthwise_by_lines(op: Op, graph: Graph, window: Window) -> Kernel:
    """Channel by channel; rows and columns change places where that makes the rows the longer."""
    filters, (height, width) = channel_filters(op, graph), window.kernel
    _, rows, columns, channels = graph.output(op).shape
    walked, transposed = window, (rows, height) > (columns, width)
    if transposed:
        walked, rows, columns = transposed_window(window), columns, rows
        filters = filters.reshape(channels, height, width).transpose(0, 2, 1)
        filters = filters.reshape(channels, -1)
    band, line = _band(walked, rows, columns), _line(walked, columns)
    kernel = walked_depthwise(
        op,
        graph,
        "thimble_depthwise_conv_s8",
        Walk(walked, band, transposed),
        raised(op, graph, filters, pack_depthwise),
        _line_bytes(walked, columns, band),
    )
    return replace(
        kernel,
        find_overlaps=lambda: overlaps.depthwise_line_overlaps(op, graph, window, transposed),
        find_terms=lambda: terms.depthwise_line_terms(op, graph, kernel.calls[0], line),
    )


def _band(window: Window, rows: int, columns: int) -> int:
    """Output rows that are computed at a time."""
    one, two = (_line_bytes(window, columns, band) for band in (1, 2))
    return max(min(1 + (_BAND_BYTES - one) // (two - one), rows), 1)


def _line(window: Window, columns: int) -> int:
    """int16 values of an image line in scratch, as `thimble_depthwise_conv_s8.c` has it."""
    outputs = round_up(columns, 4) if window.stride[1] == 1 else columns
    return round_up((outputs - 1) * window.stride[1] + window.extent[1], 2) + 2


def _line_bytes(window: Window, columns: int, band: int) -> int:
    """Scratch, as `thimble_depthwise_conv_s8` says in its header."""
    lines = (band - 1) * window.stride[0] + window.extent[0]
    taps = 4 * window.kernel[0] * (window.kernel[1] // 2 + 1)
    return 2 * (lines * _line(window, columns) + taps) + 4 * (band * columns + 1)
