"""`thimble_depthwise_conv_s8`: a depthwise convolution channel by channel, in bands of output rows,
from rows that are copied to scratch.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import shapes, walks, windows

FUNCTION = "thimble_depthwise_conv_s8"
_BAND_BYTES = 640
"""Scratch in bytes that it may always take; one output row may need more."""


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """Rows and columns change places where that makes the rows the longer."""
    (height, width), endings = window.kernel, walks.ended(op, walks.raised)
    _, rows, columns, _ = op.y.shape
    walked, transposed = window, (rows, height) > (columns, width)
    if transposed:
        walked, rows, columns = parts.transposed_window(window), columns, rows
    band, line = _band(walked, rows, columns), _line(walked, columns)

    def packed() -> kit.Int32:
        scales, ending = endings()
        return _packed(walks.along_walk(scales.filters, window, transposed), ending)

    return walks.walked_depthwise(
        op,
        FUNCTION,
        walks.Walk(walked, band, transposed),
        packed,
        scratch_bytes=_line_bytes(walked, columns, band),
        extents=_extents,
        overlaps=lambda: overlaps.line_overlaps(op, window, transposed),
        terms=lambda call: _terms(op, call, line, endings()[1]),
    )


def _band(window: kit.Window, rows: int, columns: int) -> int:
    """Output rows that are computed at a time."""
    one, two = (_line_bytes(window, columns, band) for band in (1, 2))
    return max(min(1 + (_BAND_BYTES - one) // (two - one), rows), 1)


def _line(window: kit.Window, columns: int) -> int:
    """int16 values of an image line in scratch."""
    outputs = kit.round_up(columns, 4) if window.stride[1] == 1 else columns
    return kit.round_up((outputs - 1) * window.stride[1] + window.extent[1], 2) + 2


def _line_bytes(window: kit.Window, columns: int, band: int) -> int:
    """Scratch of a band of output rows."""
    lines = (band - 1) * window.stride[0] + window.extent[0]
    taps = 4 * window.kernel[0] * (window.kernel[1] // 2 + 1)
    return 2 * (lines * _line(window, columns) + taps) + 4 * (band * columns + 1)


def _packed(filters: packing.Int8, ending: packing.Ending) -> kit.Int32:
    taps = np.concatenate([ending.code.astype(np.int8)[:, None], filters], axis=1)
    heads = np.stack([ending.bias, ending.multiplier, ending.rounding], axis=1)
    return packing.joined([heads, packing.as_words(packing.filled_up(taps, 1, 4))])


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    taps = call["shape.kernel_h"] * call["shape.kernel_w"]
    parameters = 4 * call["shape.output_c"] * (3 + -(-(1 + taps) // 4))
    return shapes.extents_of_images(touched, parameters, _lines_scratch(call))


def _lines_scratch(call: kit.Call) -> int:
    """As the header says."""
    band, columns = call["shape.band"], call["shape.output_w"]
    kernel = (call["shape.kernel_h"], call["shape.kernel_w"])
    stride = (call["shape.stride_h"], call["shape.stride_w"])
    dilation = (call["shape.dilation_h"], call["shape.dilation_w"])
    lines = (band - 1) * stride[0] + (kernel[0] - 1) * dilation[0] + 1
    outputs = kit.round_up(columns, 4) if stride[1] == 1 else columns
    seen = (outputs - 1) * stride[1] + (kernel[1] - 1) * dilation[1] + 1
    line = kit.round_up(seen, 2) + 2
    taps = 4 * kernel[0] * (kernel[1] // 2 + 1)
    return 2 * (lines * line + taps) + 4 * (band * columns + 1)


def _terms(
    op: kit.Operator[Convolution], call: kit.Call, line: int, ending: packing.Ending
) -> kit.Terms:
    """`line` is the length of an image row in scratch, in int16 values."""
    batches, channels = op.y.shape[0], op.y.shape[3]
    in_h, in_w = call["shape.input_h"], call["shape.input_w"]
    out_h, out_w = call["shape.output_h"], call["shape.output_w"]
    kernel_h, kernel_w = call["shape.kernel_h"], call["shape.kernel_w"]
    stride_h, stride_w = call["shape.stride_h"], call["shape.stride_w"]
    dilation_h, dilation_w = call["shape.dilation_h"], call["shape.dilation_w"]
    pad_top, pad_left, band = call["shape.pad_top"], call["shape.pad_left"], call["shape.band"]
    extent = (kernel_h - 1) * dilation_h + 1
    band_lines = (band - 1) * stride_h + extent
    bands = -(-out_h // band)
    kept = max(band_lines - band * stride_h, 0)
    lines = image_lines = 0
    for first in range(0, out_h, band):
        rows = min(band, out_h - first)
        top = first * stride_h - pad_top
        begin = top + (kept if first else 0)
        end = top + band_lines - (band - rows) * stride_h
        lines += max(end - begin, 0)
        image_lines += max(min(end, in_h) - max(begin, 0), 0)
    before = min(pad_left, line)
    inside = min(max(line - before, 0), in_w)
    each = batches * channels
    path, slow = walks.slow_endings(op, ending)
    slow_outputs = batches * out_h * out_w * int(slow.sum())
    outputs = each * out_h * out_w - slow_outputs
    terms: windows.Counts = {
        "call": 1.0,
        "channel": each,
        "band": each * bands,
        "band kept": each * (bands - 1) * bool(kept),
        "word kept": each * (bands - 1) * kept * line / 2,
        "line": each * image_lines,
        "line word": each * image_lines * (inside // 4),
        "line byte": each * image_lines * (inside % 4),
        "line blank": each * image_lines * (line - inside),
        "blank line": each * (lines - image_lines),
        "blank line pixel": each * (lines - image_lines) * line,
        "narrow four": each * out_h * out_w / 4 * kit.is_narrow(op),
        "output": outputs,
        f"{path} output": slow_outputs,
    }
    if call.get("shape.transposed"):
        terms["transposed row"] = each * out_h
    if dilation_w == 1 and stride_w == 1:
        fours = -(-out_w // 4)
        terms |= {
            "tap row": each * kernel_h,
            "tap": each * kernel_h * (kernel_w // 2 + 1),
            "row of fours": each * out_h,
            "four": each * out_h * fours,
            "four row": each * out_h * fours * kernel_h,
            "four step": each * out_h * fours * kernel_h * (kernel_w // 2 + 1),
        }
    else:
        twos = -(-out_w // 2)
        name = "dilated step" if dilation_w > 1 else "strided step"
        count = kernel_w if dilation_w > 1 else (kernel_w + 1) // 2
        terms |= {
            "plain tap row": each * kernel_h,
            "plain tap": each * kernel_h * kernel_w,
            "row of twos": each * out_h,
            "two": each * out_h * twos,
            "two row": each * out_h * twos * kernel_h,
            name: each * out_h * twos * kernel_h * count,
        }
    return terms
