"""`thimble_convolve_lanes_s8`: any convolution without groups, in Helium's vectors."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.convolution.common import Convolution, weight_zero_point
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
from toolchain.ops.terms import is_narrow, slow_channels
from toolchain.ops.weighted import WEIGHTS
from toolchain.ops.window import Window

FUNCTION = "thimble_convolve_lanes_s8"


def kernel(op: kit.Operator[Convolution], window: Window, filters: Int8) -> kit.Kernel:
    """`filters` are [channels, height, width, depth], without a zero point."""
    return lanes_kernel(FUNCTION, op, window, filters, before=0)


def lanes_kernel(
    function: str, op: kit.Operator[Convolution], window: Window, filters: Int8, *, before: int
) -> kit.Kernel:
    """A call of `function`, which keeps `before` bytes before each window."""
    channels, height, width, depth = filters.shape
    scales = scaled(op, filters.reshape(channels, -1))

    def calls(input_line: int, output_line: int) -> tuple[kit.Call, ...]:
        shape = conv_shape(op, window, depth, lines=(input_line, output_line))
        return (kit.Call(function, own_arguments(shape, own_requant(op))),)

    def packed() -> Int32:
        found = scales()
        return pack_fours(found.filters, own_lane_endings(op, found))

    comment = packed_comment("filters", filters.shape, function)
    return kit.Kernel(
        calls(0, 0),
        lambda touched: _extents(touched, before),
        constants=(kit.Constant("parameters", packed, comment),),
        scratch_bytes=column_bytes(height * width * depth) + 2 * before,
        strided=strided_image(op),
        calls_with_gaps=calls,
        find_overlaps=lambda: gathered_overlap(op, window, 2),
        find_terms=lambda: _terms(op, window),
    )


def _extents(touched: kit.Touched, before: int) -> kit.Extents:
    call = touched.call
    _, channels = groups_of(call)
    parameters = kit.round_up(channels, 4) * (LANE_SCALING + kit.round_up(taps(call), VECTOR_BYTES))
    return extents_of_groups(touched, parameters, column_bytes(taps(call)) + 2 * before)


def _terms(op: kit.AnyOperator, window: Window) -> kit.Terms:
    terms, weights = window_terms(op, window), op.input(WEIGHTS)
    path, slow = slow_channels(op, once=True)
    vectors = -(-weights.elements // weights.shape[0] // VECTOR_BYTES)
    summed = 2 * terms["pair of pixels"] * vectors if weight_zero_point(weights) else 0.0
    return terms | {
        "narrow block": terms["block"] * is_narrow(op),
        "twice block": terms["block"] * (op.y.q.zero_point > -128),
        "summed vector": summed,
        f"{path} channel": terms["pair of pixels"] * int(slow.sum()),
    }
