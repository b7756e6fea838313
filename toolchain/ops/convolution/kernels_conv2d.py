"""Choice of the kernel of an int8 conv2d, for each core.

Thimble's kernels are called "own" here. Cores with Helium get CMSIS-NN's (`cmsis_nn`) where their
preconditions hold and Thimble has none for vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import clamp_range
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.convolution import cmsis_nn, extents, overlaps, terms
from toolchain.ops.convolution.common import (
    INPUT,
    WEIGHTS,
    constant_of,
    convolution_of,
    weight_zero_point,
    window_of,
)
from toolchain.ops.convolution.endings import block_endings
from toolchain.ops.convolution.kernel_parts import (
    PLAIN,
    own_lane_endings,
    own_requant,
    packed_comment,
    quicker,
    scaled,
    strided_image,
)
from toolchain.ops.convolution.packing import (
    SUMMED_TAPS,
    Int8,
    fit_nibbles,
    pack_convolution,
    pack_convolution_lanes,
    pack_convolution_s4,
    pack_packed,
    with_window_sums,
)
from toolchain.ops.convolution.structs import conv_shape, own_arguments
from toolchain.ops.extents import round_up
from toolchain.ops.kernel import (
    Argument,
    Call,
    Constant,
    Input,
    Kernel,
    Loop,
    Output,
    Packed,
    Scratch,
    Struct,
)
from toolchain.ops.terms import is_narrow
from toolchain.ops.window import UNPADDED, Window


@dataclass(frozen=True)
class _Width:
    """How wide weights are in flash: the ending of the functions' names, how many channels a block
    has, and how many windows may be expanded at once, quickest first.
    """

    suffix: str
    lanes: int
    at_once: tuple[int, ...]


_FOUR_BIT_TAPS, _FOUR_BIT_CHANNELS = 24, 8
"""From so many on (channels of a group), weights of four bits are convolved in at most 1.27 times
the cycles of those of eight bits, on a Cortex-M4, M33 and M7 and the slowest flash: with few taps
and channels, what each window takes more is not spread."""


_EIGHT_BITS, _FOUR_BITS = _Width("s8", 2, (4, 3, 2)), _Width("s4", 4, (4, 2))


def select_conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """The quicker kernel of an int8 conv2d: Thimble's, but on Helium CMSIS-NN's where Thimble's for
    vectors does not take the operator.
    """
    if _takes_lanes(op, graph, core):
        return own_conv2d(op, graph, core)
    return quicker(cmsis_nn.conv2d, own_conv2d, op, graph, core)


def own_conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """Thimble's kernel of an int8 conv2d, which takes any."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    window, depth = window_of(op, graph), weights.shape[3]
    pointwise = window.kernel == PLAIN and window.padding == UNPADDED
    plain = depth == x.shape[3] and weight_zero_point(weights) == 0
    if _takes_lanes(op, graph, core):
        filters = constant_of(weights).astype(np.int8, copy=False)
        return _lanes_conv2d(op, graph, window, filters)
    width = _FOUR_BITS if _four_bits_pay(op, graph) else _EIGHT_BITS
    if core.multiplies_alone and plain and width is _EIGHT_BITS:
        return _packed_conv2d(op, graph, window)
    if pointwise and window.stride == PLAIN and plain and depth % 4 == 0:
        return _pointwise_conv2d(op, graph, window, width)
    runs = window.kernel[1] == 1 or window.dilation[1] == 1
    words = window.kernel[1] * depth % 4 == 0 and x.shape[0] == 1
    if runs and words and plain and window.padding == UNPADDED:
        return _inside_conv2d(op, graph, window, width)
    return _own_conv2d(op, graph, window, constant_of(weights).astype(np.int8), width)


def one_channel_conv2d(op: Op, graph: Graph, core: Core) -> Kernel:
    """Thimble's kernel for the depthwise convolution of an image of one channel, which is an
    ordinary one.
    """
    weights, window = graph.input(op, WEIGHTS), window_of(op, graph)
    filters = constant_of(weights).transpose(3, 1, 2, 0).astype(np.int8)
    if core.mve:
        return _lanes_conv2d(op, graph, window, filters)
    return _own_conv2d(op, graph, window, filters, _EIGHT_BITS)


def column_bytes(kernel: tuple[int, int], depth: int, columns: int) -> int:
    """Scratch in bytes for `columns` columns of taps in int16, and room to gather pixels whose
    channels are not whole words: one window or, of four columns, four.
    """
    taps, row = round_up(kernel[0] * kernel[1] * depth, 4), kernel[1] * depth
    if depth % 4 == 0:
        return 2 * columns * taps
    windows = 4 if columns == 4 else 1
    return 2 * columns * taps + (row if row % 4 == 0 else windows * taps + 4)


def _own_conv2d(op: Op, graph: Graph, window: Window, filters: Int8, width: _Width) -> Kernel:
    """The kernel for any convolution. `filters` are [channels, height, width, depth]."""
    depth, rows = filters.shape[3], filters.reshape(len(filters), -1)
    zero_point = weight_zero_point(graph.input(op, WEIGHTS))
    lanes = -(-rows.shape[1] // (4 * SUMMED_TAPS)) if zero_point else 0

    def form(at_once: int) -> _Form:
        def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
            lines = (input_line, output_line)
            shape = conv_shape(op, graph, window, depth, lines=lines, at_once=at_once)
            return (
                Call(
                    f"thimble_convolve_{width.suffix}", own_arguments(shape, own_requant(op, graph))
                ),
            )

        return _Form(calls, column_bytes(window.kernel, depth, at_once) + 8 * at_once * lanes)

    return _blocked(op, graph, window, filters, width, form)


def _pointwise_conv2d(op: Op, graph: Graph, window: Window, width: _Width) -> Kernel:
    """The kernel for 1x1 windows: one run of pixels, or row by row for strided views."""
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape

    def form(at_once: int) -> _Form:
        def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
            lined = bool(input_line or output_line)
            steps = (
                (("y", input_line or x[2] * x[3]),),
                (("y", output_line or y[2] * y[3]),),
            )
            arguments: dict[str, Argument] = {
                "pixels": y[2] if lined else y[0] * y[1] * y[2],
                "depth": x[3],
                "channels": y[3],
                "at_once": at_once,
                "requant": own_requant(op, graph),
                "input": Input(0, steps=steps[0] if lined else ()),
                "parameters": Packed("parameters"),
                "scratch": Scratch(),
                "output": Output(0, steps=steps[1] if lined else ()),
            }
            loops = (Loop("y", y[1]),) if lined else ()
            return (Call(f"thimble_convolve_1x1_{width.suffix}", arguments, loops),)

        return _Form(calls, 2 * at_once * x[3])

    filters = constant_of(graph.input(op, WEIGHTS)).astype(np.int8, copy=False)
    return _blocked(op, graph, window, filters, width, form)


def _inside_conv2d(op: Op, graph: Graph, window: Window, width: _Width) -> Kernel:
    """The kernel for windows that lie inside the image, and whose rows are whole words."""
    x, y = graph.input(op, INPUT).shape, graph.output(op).shape
    row_bytes = window.kernel[1] * x[3]

    def form(at_once: int) -> _Form:
        def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
            line = input_line or x[2] * x[3]
            shape: dict[str, Argument] = {
                "output_h": y[1],
                "output_w": y[2],
                "output_c": y[3],
                "kernel_h": window.kernel[0],
                "row_words": row_bytes // 4,
                "row_step": window.dilation[0] * line,
                "pixel_step": window.stride[1] * x[3],
                "line_step": window.stride[0] * line,
                "output_step": output_line or y[2] * y[3],
                "at_once": at_once,
            }
            struct = Struct("thimble_inside_shape", shape)
            arguments = own_arguments(struct, own_requant(op, graph))
            return (Call(f"thimble_convolve_inside_{width.suffix}", arguments),)

        return _Form(calls, 2 * at_once * window.kernel[0] * row_bytes)

    filters = constant_of(graph.input(op, WEIGHTS)).astype(np.int8, copy=False)
    return _blocked(op, graph, window, filters, width, form)


@dataclass(frozen=True)
class _Form:
    """A kernel for so many windows at once: its calls for line strides, and its scratch."""

    calls: Callable[[int, int], tuple[Call, ...]]
    scratch_bytes: int


def _packed_conv2d(op: Op, graph: Graph, window: Window) -> Kernel:
    """The kernel for cores that have no product of two pairs: two pixels in each word."""
    weights = graph.input(op, WEIGHTS)
    channels, height, width, depth = weights.shape
    filters = constant_of(weights).astype(np.int8, copy=False).reshape(channels, -1)
    scales = scaled(op, graph, filters)
    function = "thimble_convolve_packed_s8"

    def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
        shape = conv_shape(op, graph, window, depth, lines=(input_line, output_line))
        return (Call(function, own_arguments(shape, own_requant(op, graph))),)

    comment = packed_comment("filters", weights.shape, function)
    return Kernel(
        calls(0, 0),
        extents.packed_conv,
        constants=(Constant("parameters", lambda: pack_packed(scales()), comment),),
        scratch_bytes=8 * height * width * depth + round_up(depth, 4),
        strided=strided_image(op, graph),
        calls_with_gaps=calls,
        find_overlaps=lambda: overlaps.own_conv_overlaps(op, graph, function, window, depth, 4),
        find_terms=lambda: terms.packed_conv_terms(op, graph, window, filters),
    )


def _blocked(
    op: Op,
    graph: Graph,
    window: Window,
    filters: Int8,
    width: _Width,
    form: Callable[[int], _Form],
) -> Kernel:
    """A kernel that takes `filters` [channels, height, width, depth] by blocks of channels.

    `form` is called with how many windows are expanded at once.
    """
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    depth = filters.shape[3]
    function = form(width.at_once[-1]).calls(0, 0)[0].function
    groups, scales = x.shape[3] // depth, scaled(op, graph, filters.reshape(len(filters), -1))

    def packed() -> Int32:
        found, zero_point = scales(), weight_zero_point(weights)
        clamp = clamp_range(convolution_of(op).activation, y)
        ending = block_endings(found, y.q.zero_point, clamp, zero_point, groups, width.lanes)
        if width is _FOUR_BITS:
            return pack_convolution_s4(found.filters, ending, groups, is_narrow(op, graph))
        return pack_convolution(with_window_sums(found.filters, zero_point), ending, groups)

    name = "four-bit filters" if width is _FOUR_BITS else "filters"
    constants = (Constant("parameters", packed, packed_comment(name, weights.shape, function)),)

    def kernel(at_once: int) -> Kernel:
        chosen = form(at_once)
        return Kernel(
            chosen.calls(0, 0),
            extents.own_conv,
            constants=constants,
            scratch_bytes=chosen.scratch_bytes,
            strided=strided_image(op, graph),
            calls_with_gaps=chosen.calls,
            find_overlaps=lambda: overlaps.own_conv_overlaps(
                op, graph, function, window, depth, at_once
            ),
            find_terms=lambda: terms.own_conv_terms(
                op, graph, function, window, groups, depth, at_once
            ),
            form=f"{at_once} at once" if at_once > width.at_once[-1] else "",
        )

    pixels = y.shape[1] * y.shape[2] * (y.shape[0] if "_1x1_" in function else 1)
    *more, least = width.at_once
    useful = [at_once for at_once in more if pixels > least]
    return replace(
        kernel(least), roomier=cache(lambda: tuple(kernel(at_once) for at_once in useful))
    )


def _takes_lanes(op: Op, graph: Graph, core: Core) -> bool:
    """Whether the kernel for vectors of Helium takes a convolution."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    return core.mve and weights.shape[3] == x.shape[3]


def _lanes_conv2d(op: Op, graph: Graph, window: Window, filters: Int8) -> Kernel:
    """`filters` are [channels, height, width, depth]."""
    channels, height, width, depth = filters.shape
    offset = weight_zero_point(graph.input(op, WEIGHTS)) != 0
    function = "thimble_convolve_offset_lanes_s8" if offset else "thimble_convolve_lanes_s8"
    scales = scaled(op, graph, filters.reshape(channels, -1))

    def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
        shape = conv_shape(op, graph, window, depth, lines=(input_line, output_line))
        return (Call(function, own_arguments(shape, own_requant(op, graph))),)

    def packed() -> Int32:
        found = scales()
        return pack_convolution_lanes(found.filters, own_lane_endings(op, graph, found))

    comment = packed_comment("filters", filters.shape, function)
    return Kernel(
        calls(0, 0),
        extents.own_conv,
        constants=(Constant("parameters", packed, comment),),
        scratch_bytes=extents.lane_columns(height * width * depth, function),
        strided=strided_image(op, graph),
        calls_with_gaps=calls,
        find_overlaps=lambda: overlaps.own_conv_overlaps(op, graph, function, window, depth, 2),
        find_terms=lambda: terms.lanes_conv_terms(op, graph, window),
    )


def _four_bits_pay(op: Op, graph: Graph) -> bool:
    """Whether weights fit four bits, and packing them saves flash and costs little time."""
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    if weight_zero_point(weights):
        return False
    taps = round_up(weights.elements // weights.shape[0], 4)
    channels = weights.shape[0] * weights.shape[3] // x.shape[3]  # of a group
    if taps < _FOUR_BIT_TAPS or channels < _FOUR_BIT_CHANNELS:
        return False
    packed = -(-channels // 4) * (14 + taps // 2)
    unpacked = -(-channels // 2) * (7 + taps // 2)
    return packed < unpacked and fit_nibbles(constant_of(weights).astype(np.int8, copy=False))
