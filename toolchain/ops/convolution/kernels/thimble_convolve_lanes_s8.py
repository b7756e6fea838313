"""`thimble_convolve_lanes_s8`: any convolution without groups, in Helium's vectors."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution, weight_zero_point
from toolchain.ops.convolution.kernels import lanes, shapes

FUNCTION = "thimble_convolve_lanes_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.LANES}


def kernel(op: kit.Operator[Convolution], window: kit.Window, filters: packing.Int8) -> kit.Kernel:
    """`filters` are [channels, height, width, depth], without a zero point."""
    return lanes_kernel(FUNCTION, op, window, filters, before=0)


def lanes_kernel(
    function: str,
    op: kit.Operator[Convolution],
    window: kit.Window,
    filters: packing.Int8,
    *,
    before: int,
) -> kit.Kernel:
    """A call of `function`, which keeps `before` bytes before each window."""
    channels, height, width, depth = filters.shape
    scales = parts.scaled(op, filters.reshape(channels, -1))

    def call(lines: tuple[int, int]) -> kit.Call:
        return parts.own_call(op, function, parts.conv_shape(op, window, depth, lines=lines))

    def packed() -> kit.Int32:
        scaling = scales()
        return lanes.pack_fours(scaling.filters, parts.own_lane_endings(op, scaling))

    return parts.image_kernel(
        op,
        call,
        parts.parameters(op, function, packed, shape=filters.shape),
        scratch_bytes=lanes.column_bytes(height * width * depth) + 2 * before,
        extents=lambda touched: _extents(touched, before),
        overlaps=lambda: overlaps.gathered_overlap(op, window, 2),
        terms=lambda: _terms(op, window),
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


def _terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    terms, weights = lanes.window_terms(op, window), op.input(kit.WEIGHTS)
    path, slow = kit.slow_channels(op, once=True)
    vectors = -(-weights.elements // weights.shape[0] // packing.VECTOR_BYTES)
    summed = 2 * terms["pair of pixels"] * vectors if weight_zero_point(weights) else 0.0
    return terms | {
        "narrow block": terms["block"] * kit.is_narrow(op),
        "twice block": terms["block"] * (op.y.q.zero_point > -128),
        "summed vector": summed,
        f"{path} channel": terms["pair of pixels"] * int(slow.sum()),
    }
