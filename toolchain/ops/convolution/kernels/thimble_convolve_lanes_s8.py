"""`thimble_convolve_lanes_s8`: any convolution without groups, in Helium's vectors;
`thimble_convolve_offset_lanes_s8` of weights with a zero point, which also sums the windows: it
keeps a vector before each.
"""

from __future__ import annotations

import math

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution, depth_of, filters_of, weight_zero_point
from toolchain.ops.convolution.kernels import lanes, shapes

FUNCTIONS = PLAIN, OFFSET = "thimble_convolve_lanes_s8", "thimble_convolve_offset_lanes_s8"


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """The kernel of a conv2d without groups, or of a depthwise_conv2d of one channel."""
    function, before = PLAIN, 0
    if weight_zero_point(op.input(kit.WEIGHTS)):
        function, before = OFFSET, packing.VECTOR_BYTES
    filters = filters_of(op)
    (channels, taps), depth = filters.shape, depth_of(filters, window)
    scales = parts.scaled(op, filters)

    def call(lines: tuple[int, int]) -> kit.Call:
        return parts.own_call(op, function, parts.conv_shape(op, window, depth, lines=lines))

    def packed() -> kit.Int32:
        scaling = scales()
        return lanes.pack_fours(scaling.filters, parts.own_lane_endings(op, scaling))

    return parts.image_kernel(
        op,
        call,
        parts.parameters(op, function, packed, shape=(channels, *window.kernel, depth)),
        scratch_bytes=lanes.column_bytes(taps) + 2 * before,
        extents=lambda touched: _extents(touched, before),
        overlaps=lambda: overlaps.gathered_overlap(op, window, 2),
        terms=lambda: _terms(op, window, parts.own_lane_endings(op, scales())),
    )


def _extents(touched: kit.Touched, before: int) -> kit.Extents:
    call = touched.call
    _, channels = shapes.groups_of(call)
    parameters = kit.round_up(channels, 4) * (
        lanes.LANE_SCALING + kit.round_up(shapes.taps(call), packing.VECTOR_BYTES)
    )
    return shapes.extents_of_groups(
        touched, parameters, lanes.column_bytes(shapes.taps(call)) + 2 * before
    )


def _terms(op: kit.Operator[Convolution], window: kit.Window, ending: packing.Ending) -> kit.Terms:
    terms, y = lanes.window_terms(op, window), op.y
    channels, taps = y.shape[3], math.prod(window.kernel) * op.x.shape[3]
    vectors, summed = lanes.vectors(taps), weight_zero_point(op.input(kit.WEIGHTS)) != 0
    pairs = terms["pair of pixels"]
    if not summed and _is_one_run(op, window):
        pairs = -(-y.elements // channels // 2)
        terms = {"call": 1.0, "run pair": pairs, "run vector": pairs * lanes.vectors(2 * taps)}
    products = lanes.product_terms(pairs, channels, taps, lanes.Fours.of(ending))
    held = pairs * kit.is_narrow(op) * bool(products["four"])
    return {
        **terms,
        **products,
        "narrow pair": held,
        "narrow vector": 2 * held * lanes.vectors(channels // 4 * 4),
        "summed vector": 2 * pairs * vectors * summed,
    }


def _is_one_run(op: kit.AnyOperator, window: kit.Window) -> bool:
    """Whether windows are single pixels that follow each other."""
    return window.kernel == window.stride == parts.PLAIN and op.x.shape[1:3] == op.y.shape[1:3]
