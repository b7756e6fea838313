"""Kernels of int8 depthwise convolutions that take windows of any size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution import extents, overlaps, terms
from toolchain.ops.convolution.common import (
    BIAS,
    INPUT,
    WEIGHTS,
    constant_of,
    convolution_of,
    has_bias,
    weight_zero_point,
)
from toolchain.ops.convolution.endings import raised_endings
from toolchain.ops.convolution.kernel_parts import (
    own_requant,
    packed_comment,
    scaled,
    strided_image,
    tensor_scaling,
)
from toolchain.ops.convolution.packing import (
    Ending,
    Int8,
    Scaling,
    pack_depthwise,
    pack_raised_blocks,
)
from toolchain.ops.convolution.structs import conv_shape, own_arguments, transposed_window
from toolchain.ops.extents import round_up
from toolchain.ops.kernel import Call, Constant, Kernel
from toolchain.ops.window import Window

_BAND_BYTES = 640
"""Scratch in bytes that a depthwise kernel may always take; one output row may need more."""
_REMEMBERED = 256
_INT8 = (-128, 127)
Endings = Callable[[Scaling, int, int], Ending]
"""How sums end, by their scales, the output's zero point and that of the weights."""


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
    return filters_of(graph.input(op, WEIGHTS))


def filters_of(weights: Tensor) -> Int8:
    """Those of weights [1, height, width, channels]."""
    return constant_of(weights).reshape(-1, weights.shape[3]).T.astype(np.int8, copy=False)


def along_walk(filters: Int8, window: Window, transposed: bool) -> Int8:
    """Filters [channels, height * width] as a walk takes them: [channels, width * height] if that
    is `transposed`.
    """
    if not transposed:
        return filters
    return filters.reshape(-1, *window.kernel).transpose(0, 2, 1).reshape(len(filters), -1)


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


def ended(op: Op, graph: Graph, ending: Endings) -> Callable[[], tuple[Scaling, Ending]]:
    """The channels' filters [channels, height * width] with their scales, and how their sums end by
    `ending` before the activation, which is the kernel's last step. Computed when the returned
    function is called. Raises ScaleError at once as `check_sums` does.
    """
    scaled(op, graph, channel_filters(op, graph))
    attributes, weights = convolution_of(op), graph.input(op, WEIGHTS)
    bias = graph.input(op, BIAS) if has_bias(op) else None
    given = (graph.input(op, INPUT).q, graph.output(op).q)
    return lambda: _ended(ending, weights, bias, given, attributes.activation, attributes.rounding)


@lru_cache(maxsize=_REMEMBERED)
def _ended(
    ending: Endings,
    weights: Tensor,
    bias: Tensor | None,
    given: tuple[Quantisation, Quantisation],
    activation: Activation,
    rounding: Rounding,
) -> tuple[Scaling, Ending]:
    """The same for all forms and all blocks of an operator, which read the very same tensors (a
    Tensor is equal to itself alone). `given`: of its input and output.
    """
    x, y = (Tensor(name, (), DType.INT8, q) for name, q in zip("xy", given, strict=True))
    filters = filters_of(weights)
    added = np.zeros(len(filters), np.int32)
    if bias is not None:
        added = constant_of(bias).reshape(-1).astype(np.int32)
    scales = tensor_scaling((x, weights, y), added, activation, rounding, filters)()
    return scales, ending(scales, y.q.zero_point, weight_zero_point(weights))


def raised(scales: Scaling, offset: int, weight_zero_point: int) -> Ending:
    """`raised_endings` before an activation."""
    return raised_endings(scales, offset, _INT8, weight_zero_point)


def depthwise_by_blocks(op: Op, graph: Graph, window: Window) -> Kernel:
    """Blocks of four channels."""
    y, (height, width) = graph.output(op), window.kernel
    band = waiting_rows(y.shape[1], window)
    seen = (min(y.shape[2], extents.EDGE_OUTPUTS) - 1) * window.stride[1] + window.extent[1]
    endings = ended(op, graph, raised)

    def packed() -> Int32:
        scales, ending = endings()
        return pack_raised_blocks(scales.filters, ending)

    kernel = walked_depthwise(
        op,
        graph,
        "thimble_depthwise_conv_blocks_s8",
        Walk(window, band),
        packed,
        64 + 8 * height * width + 4 * height * seen + 4 * band * y.shape[2],
    )
    return replace(
        kernel,
        find_overlaps=lambda: overlaps.channel_block_overlaps(op, graph, window, band),
        find_terms=lambda: terms.channel_block_terms(
            op, graph, window, terms.slow_endings(op, endings()[1])
        ),
    )


def depthwise_by_lines(op: Op, graph: Graph, window: Window) -> Kernel:
    """Channel by channel; rows and columns change places where that makes the rows the longer."""
    (height, width), endings = window.kernel, ended(op, graph, raised)
    _, rows, columns, _ = graph.output(op).shape
    walked, transposed = window, (rows, height) > (columns, width)
    if transposed:
        walked, rows, columns = transposed_window(window), columns, rows
    band, line = _band(walked, rows, columns), _line(walked, columns)

    def packed() -> Int32:
        scales, ending = endings()
        return pack_depthwise(along_walk(scales.filters, window, transposed), ending)

    kernel = walked_depthwise(
        op,
        graph,
        "thimble_depthwise_conv_s8",
        Walk(walked, band, transposed),
        packed,
        _line_bytes(walked, columns, band),
    )
    return replace(
        kernel,
        find_overlaps=lambda: overlaps.depthwise_line_overlaps(op, graph, window, transposed),
        find_terms=lambda: terms.depthwise_line_terms(
            op, graph, kernel.calls[0], line, terms.slow_endings(op, endings()[1])
        ),
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
