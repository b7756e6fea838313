"""`thimble_convolve_lanes_s8`: any convolution without groups, in Helium's vectors."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.convolution.common import weight_zero_point
from toolchain.ops.convolution.kernel_parts import (
    own_lane_endings,
    own_requant,
    packed_comment,
    scaled,
    strided_image,
)
from toolchain.ops.convolution.kernels.lanes import (
    LANE_SCALING,
    column_bytes,
    pack_fours,
    window_terms,
)
from toolchain.ops.convolution.kernels.shape import extents_of_groups, groups_of, taps
from toolchain.ops.convolution.overlaps import gathered_overlap
from toolchain.ops.convolution.packing import VECTOR_BYTES, Int8
from toolchain.ops.convolution.structs import conv_shape, own_arguments
from toolchain.ops.extents import Extents, round_up
from toolchain.ops.kernel import Call, Constant, Kernel, Terms, Touched
from toolchain.ops.terms import is_narrow, slow_channels
from toolchain.ops.weighted import WEIGHTS
from toolchain.ops.window import Window

FUNCTION = "thimble_convolve_lanes_s8"


def kernel(op: Op, graph: Graph, window: Window, filters: Int8) -> Kernel:
    """`filters` are [channels, height, width, depth], without a zero point."""
    return lanes_kernel(FUNCTION, op, graph, window, filters, before=0)


def lanes_kernel(
    function: str, op: Op, graph: Graph, window: Window, filters: Int8, *, before: int
) -> Kernel:
    """A call of `function`, which keeps `before` bytes before each window."""
    channels, height, width, depth = filters.shape
    scales = scaled(op, graph, filters.reshape(channels, -1))

    def calls(input_line: int, output_line: int) -> tuple[Call, ...]:
        shape = conv_shape(op, graph, window, depth, lines=(input_line, output_line))
        return (Call(function, own_arguments(shape, own_requant(op, graph))),)

    def packed() -> Int32:
        found = scales()
        return pack_fours(found.filters, own_lane_endings(op, graph, found))

    comment = packed_comment("filters", filters.shape, function)
    return Kernel(
        calls(0, 0),
        lambda touched: _extents(touched, before),
        constants=(Constant("parameters", packed, comment),),
        scratch_bytes=column_bytes(height * width * depth) + 2 * before,
        strided=strided_image(op, graph),
        calls_with_gaps=calls,
        find_overlaps=lambda: gathered_overlap(op, graph, window, 2),
        find_terms=lambda: _terms(op, graph, window),
    )


def _extents(touched: Touched, before: int) -> Extents:
    call = touched.call
    _, channels = groups_of(call)
    parameters = round_up(channels, 4) * (LANE_SCALING + round_up(taps(call), VECTOR_BYTES))
    return extents_of_groups(touched, parameters, column_bytes(taps(call)) + 2 * before)


def _terms(op: Op, graph: Graph, window: Window) -> Terms:
    terms, weights = window_terms(op, graph, window), graph.input(op, WEIGHTS)
    path, slow = slow_channels(op, graph, once=True)
    vectors = -(-weights.elements // weights.shape[0] // VECTOR_BYTES)
    summed = 2 * terms["pair of pixels"] * vectors if weight_zero_point(weights) else 0.0
    return terms | {
        "narrow block": terms["block"] * is_narrow(op, graph),
        "twice block": terms["block"] * (graph.output(op).q.zero_point > -128),
        "summed vector": summed,
        f"{path} channel": terms["pair of pixels"] * int(slow.sum()),
    }
