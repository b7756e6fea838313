"""`thimble_depthwise_lanes_s8`: a depthwise convolution in Helium's vectors, four channels of a row
and four outputs at a time.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution, filters_of
from toolchain.ops.convolution.kernels import lanes, shapes, walks

FUNCTION = "thimble_depthwise_lanes_s8"
_TOGETHER = kit.defined(f"source/convolution/{FUNCTION}.c", "TOGETHER")
"""Outputs of a row that are computed together."""


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """The kernel of a multiple of four channels with one filter each, without dilation and zero
    point of weights.
    """
    y = op.y
    band, columns = walks.waiting_rows(y.shape[1], window), max(y.shape[2], _TOGETHER)
    seen = (columns - 1) * window.stride[1] + window.kernel[1]
    scales = parts.scaled(op, filters_of(op))

    def ending() -> packing.Ending:
        return parts.own_lane_endings(op, scales())

    def packed() -> kit.Int32:
        return _packed(scales().filters, ending())

    return walks.walked_depthwise(
        op,
        FUNCTION,
        walks.Walk(window, band),
        packed,
        scratch_bytes=4 * (window.kernel[0] * seen + band * columns),
        extents=_extents,
        overlaps=lambda: overlaps.channel_block_overlaps(op, window, band),
        terms=lambda call: _terms(op, window, lanes.Fours.of(ending())),
    )


def _packed(filters: packing.Int8, ending: packing.Ending) -> kit.Int32:
    """`filters` are [channels, taps]."""
    blocks = filters.reshape(-1, 4, filters.shape[1]).transpose(0, 2, 1)
    return packing.joined(
        [lanes.lane_scaling(ending), packing.as_words(blocks).reshape(len(blocks), -1)]
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    taps = call["shape.kernel_h"] * call["shape.kernel_w"]
    columns = max(call["shape.output_w"], _TOGETHER)
    seen = (columns - 1) * call["shape.stride_w"] + call["shape.kernel_w"]
    scratch = 4 * (call["shape.kernel_h"] * seen + call["shape.band"] * columns)
    return shapes.extents_of_images(
        touched, call["shape.output_c"] * (lanes.LANE_SCALING + taps), scratch
    )


def _terms(op: kit.AnyOperator, window: kit.Window, scaled: lanes.Fours) -> kit.Terms:
    batches, out_h, out_w, channels = op.y.shape
    (kernel_h, kernel_w), stride = window.kernel, window.stride
    blocks = batches * channels // 4
    columns = max(out_w, _TOGETHER)
    fours = blocks * out_h * -(-columns // _TOGETHER)
    rows = blocks * (kernel_h + (out_h - 1) * min(stride[0], kernel_h))
    return {
        "call": 1.0,
        "row": blocks * out_h,
        "output": blocks * out_h * out_w,
        "ring row": rows,
        "ring pixel": rows * ((columns - 1) * stride[1] + kernel_w),
        "four": fours,
        "four row": fours * kernel_h,
        "four tap": fours * kernel_h * kernel_w,
        **lanes.ending_terms(scaled, _TOGETHER * batches * out_h * -(-columns // _TOGETHER)),
    }
