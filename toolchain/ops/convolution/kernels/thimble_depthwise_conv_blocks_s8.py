"""`thimble_depthwise_conv_blocks_s8`: a depthwise convolution by blocks of four channels.

It gathers the windows that reach beyond the image and reads the others in place.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import overlaps
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import shapes, walks, windows

FUNCTION = "thimble_depthwise_conv_blocks_s8"
_EDGE_OUTPUTS = kit.defined(f"source/convolution/{FUNCTION}.c", "EDGE_OUTPUTS")
"""Outputs at an edge whose windows are gathered together."""


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """The kernel of a multiple of four channels with one filter each, without a zero point of
    weights.
    """
    y, (height, width) = op.y, window.kernel
    band = walks.waiting_rows(y.shape[1], window)
    seen = (min(y.shape[2], _EDGE_OUTPUTS) - 1) * window.stride[1] + window.extent[1]
    endings = walks.ended(op, walks.raised)

    def packed() -> kit.Int32:
        scales, ending = endings()
        return _packed(scales.filters, ending)

    return walks.walked_depthwise(
        op,
        FUNCTION,
        walks.Walk(window, band),
        packed,
        scratch_bytes=64 + 8 * height * width + 4 * height * seen + 4 * band * y.shape[2],
        extents=_extents,
        overlaps=lambda: overlaps.channel_block_overlaps(op, window, band),
        terms=lambda call: _terms(op, window, endings()[1]),
    )


def _packed(filters: packing.Int8, ending: packing.Ending) -> kit.Int32:
    blocks = filters.reshape(-1, 4, filters.shape[1]).transpose(0, 2, 1)
    return packing.joined(
        [
            ending.bias.reshape(-1, 4),
            ending.multiplier.reshape(-1, 4),
            packing.as_words(ending.code.astype(np.int8).reshape(-1, 4)),
            ending.rounding.reshape(-1, 4),
            packing.as_words(blocks).reshape(len(blocks), -1),
        ]
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    taps = call["shape.kernel_h"] * call["shape.kernel_w"]
    parameters = 4 * (call["shape.output_c"] // 4) * (13 + taps)
    seen = (min(call["shape.output_w"], _EDGE_OUTPUTS) - 1) * call["shape.stride_w"]
    seen += (call["shape.kernel_w"] - 1) * call["shape.dilation_w"] + 1
    scratch = 64 + 8 * taps + 4 * call["shape.kernel_h"] * seen
    scratch += 4 * call["shape.band"] * call["shape.output_w"]
    return shapes.extents_of_images(touched, parameters, scratch)


def _terms(op: kit.Operator[Convolution], window: kit.Window, ending: packing.Ending) -> kit.Terms:
    batches, out_h, out_w, channels = op.y.shape
    (kernel_h, kernel_w), stride_w = window.kernel, window.stride[1]
    rows, columns = kit.walked(op.x.shape, op.y.shape, window)
    whole = rows.whole if columns.whole else 0
    left = min(-(-window.padding.left // stride_w), out_w)
    sides = (left, out_w - left - columns.whole)
    edge = whole * sum(sides) + (out_h - whole) * out_w
    runs = whole * sum(-(-side // 4) for side in sides) + (out_h - whole) * -(-out_w // 4)
    each = batches * channels // 4
    path, slow = walks.slow_endings(op, ending)
    slow_outputs = batches * out_h * out_w * int(slow.reshape(-1, 4).any(axis=1).sum())
    outputs = each * out_h * out_w
    terms: windows.Counts = {
        "call": 1.0,
        "four channels": each,
        "tap": each * kernel_h * kernel_w,
        "row": each * out_h,
        "row inside": each * whole,
        "gathered run": each * runs,
        "gathered row": each * runs * kernel_h,
        "gathered pixel": each
        * kernel_h
        * (edge * stride_w + runs * (window.extent[1] - stride_w)),
        "narrow four": outputs * kit.is_narrow(op),
    }
    terms[f"{path} output"] = slow_outputs
    terms[f"{path} tap"] = slow_outputs * kernel_h * kernel_w
    outputs -= slow_outputs
    if window.kernel == (3, 3):
        terms["3x3"] = outputs
    elif kernel_h % 2 and kernel_h <= 7:
        terms["odd"] = outputs
        terms["odd column"] = outputs * kernel_w
        terms["odd two rows"] = outputs * kernel_w * (kernel_h // 2)
    else:
        terms["other"] = outputs
        terms["other column"] = outputs * kernel_w
        terms["other two rows"] = outputs * kernel_w * (kernel_h // 2)
        terms["other row"] = outputs * kernel_w * (kernel_h % 2)
    return terms
