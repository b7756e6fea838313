"""`thimble_depthwise_windows_lanes_s8`: a depthwise convolution whose windows each fit one of
Helium's vectors, in strips of outputs of four channels.
"""

from __future__ import annotations

from dataclasses import replace

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution, filters_of
from toolchain.ops.convolution.kernels import lanes, shapes, walks

FUNCTION = "thimble_depthwise_windows_lanes_s8"
_SOURCE = f"source/convolution/{FUNCTION}.c"
SIDE = kit.defined(_SOURCE, "SIDE")
"""Rows and columns of the largest window."""
_STRIP = kit.defined(_SOURCE, "STRIP")
"""Outputs of a row that are computed from the same columns."""


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """The kernel of a multiple of four channels with one filter each, without dilation and zero
    point of weights.
    """
    y = op.y
    band, columns = walks.waiting_rows(y.shape[1], window), y.shape[2]
    at_once = _rows_at_once(window.kernel[0], window.stride[0])
    scales = parts.scaled(op, filters_of(op))

    def ending() -> packing.Ending:
        return parts.own_lane_endings(op, scales())

    def packed() -> kit.Int32:
        return _packed(scales().filters.reshape(-1, *window.kernel), ending())

    strips = 4 * columns * (band + at_once - 1)
    made = walks.walked_depthwise(
        op,
        FUNCTION,
        walks.Walk(window, band),
        packed,
        scratch_bytes=_column_bytes(columns, window.stride[1]) + strips,
        extents=_extents,
        overlaps=lambda: overlaps.channel_block_overlaps(op, window, band),
        terms=lambda call: _terms(op, window, at_once, lanes.Fours.of(ending())),
    )
    return replace(made, at_words=frozenset((op.x.name, op.y.name)))


def _rows_at_once(height: int, stride: int) -> int:
    """Output rows that are computed from the same vectors."""
    return 2 if height + stride <= SIDE else 1


def _column_bytes(columns: int, stride: int) -> int:
    """Bytes of the image columns that are gathered at a time."""
    seen = (min(columns, _STRIP) - 1) * stride + SIDE
    return 4 * SIDE * kit.round_up(seen, SIDE)


def _packed(filters: packing.Int8, ending: packing.Ending) -> kit.Int32:
    """`filters` are [channels, rows, columns], and their columns become words."""
    columns = packing.as_words(packing.filled_up(filters.transpose(0, 2, 1), 2, 4))
    return packing.joined([lanes.lane_scaling(ending), columns.reshape(len(filters) // 4, -1)])


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    parameters = call["shape.output_c"] * (lanes.LANE_SCALING + SIDE * call["shape.kernel_w"])
    at_once = _rows_at_once(call["shape.kernel_h"], call["shape.stride_h"])
    scratch = _column_bytes(call["shape.output_w"], call["shape.stride_w"])
    scratch += 4 * call["shape.output_w"] * (call["shape.band"] + at_once - 1)
    return shapes.extents_of_images(touched, parameters, scratch)


def _terms(op: kit.AnyOperator, window: kit.Window, at_once: int, scaled: lanes.Fours) -> kit.Terms:
    """`at_once` rows of strips are computed together."""
    batches, out_h, out_w, channels = op.y.shape
    width, stride, left = op.x.shape[2], window.stride, window.padding.left
    blocks = batches * channels // 4
    pairs = out_h // 2 if at_once == 2 else 0
    turns = pairs + (out_h - 2 * pairs)
    outputs = [min(_STRIP, out_w - column) for column in range(0, out_w, _STRIP)]
    fours = whole = runs = 0
    for at, count in enumerate(outputs):
        first = at * _STRIP * stride[1] - left
        seen = -(-((count - 1) * stride[1] + SIDE) // SIDE)
        here = sum(0 <= first + SIDE * four <= width - SIDE for four in range(seen))
        fours += seen
        whole += here
        runs += here > 0
    tops = range(-window.padding.top, out_h * stride[0] - window.padding.top, at_once * stride[0])
    inside = sum(0 <= top <= op.x.shape[1] - SIDE for top in tops)
    return {
        "call": 1.0,
        "block": blocks,
        "turn": blocks * turns,
        "strip": blocks * turns * len(outputs),
        "run of columns": blocks * inside * runs,
        "whole columns": blocks * inside * whole,
        "edge columns": blocks * (turns * fours - inside * whole),
        "window": 4 * blocks * out_w * (turns - pairs),
        "two windows": 4 * blocks * out_w * pairs,
        "strip of a row": blocks * out_h * len(outputs),
        "output": blocks * out_h * out_w,
        **lanes.ending_terms(scaled, batches * out_h * out_w, batches * out_h * len(outputs)),
    }
