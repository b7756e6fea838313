"""`thimble_depthwise_conv_s8`: a depthwise convolution channel by channel, in bands of output rows,
from rows that are copied to scratch.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.fixed_point import wrap_int32
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import Convolution, weight_zero_point
from toolchain.ops.convolution.kernels import shapes, walks, windows

FUNCTION = "thimble_depthwise_conv_s8"
_BAND_BYTES = 640
"""Scratch in bytes that it may always take; one output row may need more."""
_FOUR, _MOST_STRIDE = 4, 2
"""Outputs of a row that are computed together, up to so large a stride."""
_STEPS = kit.defined(f"source/convolution/{FUNCTION}.c", "STEPS")


def kernel(op: kit.Operator[Convolution], window: kit.Window) -> kit.Kernel:
    """Rows and columns change places where that makes the rows the longer. A band has more rows
    where there is room.
    """
    _, rows, columns, _ = op.y.shape
    (height, width), held = window.kernel, op.x.shape[1]
    walked, transposed = window, (rows, height) > (columns, width)
    if transposed:
        walked, rows, columns = parts.transposed_window(window), columns, rows
        held = op.x.shape[2]
    endings = walks.ended(op, walks.raised)

    def packed() -> kit.Int32:
        scales, ending = endings()
        bias = _unfolded(op, scales, ending)
        return _packed(walks.along_walk(scales.filters, window, transposed), bias, ending)

    def banded(band: int) -> kit.Kernel:
        return walks.walked_depthwise(
            op,
            FUNCTION,
            walks.Walk(walked, band, transposed),
            packed,
            scratch_bytes=_scratch(walked, (rows, columns), band, held),
            extents=_extents,
            overlaps=lambda: overlaps.line_overlaps(op, window, transposed),
            terms=lambda call: _terms(op, call, endings()[1]),
            form=f"{band} rows{' transposed' if transposed else ''}",
        )

    bands = sorted({-(-rows // count) for count in range(1, rows + 1)}, reverse=True)
    sizes = [_scratch(walked, (rows, columns), band, held) for band in bands]
    lean = next((n for n, size in enumerate(sizes) if size <= _BAND_BYTES), len(bands) - 1)
    more = bands[:lean]
    return replace(
        banded(bands[lean]), more_scratch=cache(lambda: tuple(banded(band) for band in more))
    )


def _scratch(window: kit.Window, output: tuple[int, int], band: int, held: int) -> int:
    """Scratch of a band of output rows, for an output of so many rows and columns, of an image of
    `held` rows. As the header says.
    """
    height, (stride_h, stride_w), (_, columns) = window.kernel[0], window.stride, output
    lines = min((band - 1) * stride_h + window.extent[0], held)
    words = height * _steps(window, output[0], held)
    words *= 2 if stride_w == 1 and _by_fours(window, output[0], held) else 1
    return 2 * lines * _line(window, columns) + 4 * (words + band * columns + _FOUR - 1)


def _steps(window: kit.Window, rows: int, held: int) -> int:
    """Steps of a kernel row, of two taps each; a single row of many is filled up to parts of as
    many each.
    """
    (height, width), fours = window.kernel, _by_fours(window, rows, held)
    steps = width // 2 + 1 if fours and window.stride[1] == 1 else (width + 1) // 2
    parts = -(-steps // _STEPS) if fours and height == 1 else 1
    return kit.round_up(steps, parts)


def _line(window: kit.Window, columns: int) -> int:
    """int16 values of an image line in scratch."""
    outputs = kit.round_up(columns, _FOUR) if window.stride[1] <= _MOST_STRIDE else columns
    return kit.round_up((outputs - 1) * window.stride[1] + window.extent[1], 2) + 2


def _by_fours(window: kit.Window, rows: int, held: int) -> bool:
    """Whether four outputs of a row are computed at once: each of the `rows` of outputs sees one of
    the `held` rows of the image.
    """
    top, stride = window.padding.top, window.stride[0]
    seen = top < window.kernel[0] and (rows - 1) * stride - top < held
    return seen and window.dilation == parts.PLAIN and window.stride[1] <= _MOST_STRIDE


def _unfolded(
    op: kit.Operator[Convolution], scales: packing.Scaling, ending: packing.Ending
) -> kit.Int32:
    """Biases of sums of inputs less their zero point."""
    weights = scales.filters.astype(np.int64) - weight_zero_point(op.input(kit.WEIGHTS))
    bias: kit.Int32 = wrap_int32(ending.bias + op.x.q.zero_point * weights.sum(axis=1)).astype(
        np.int32
    )
    return bias


def _packed(filters: packing.Int8, bias: kit.Int32, ending: packing.Ending) -> kit.Int32:
    taps = np.concatenate([ending.code.astype(np.int8)[:, None], filters], axis=1)
    heads = np.stack([bias, ending.multiplier, ending.rounding], axis=1)
    return packing.joined([heads, packing.as_words(packing.filled_up(taps, 1, 4))])


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    taps = call["shape.kernel_h"] * call["shape.kernel_w"]
    parameters = 4 * call["shape.output_c"] * (3 + -(-(1 + taps) // 4))
    output = (call["shape.output_h"], call["shape.output_w"])
    scratch = _scratch(_window(call), output, call["shape.band"], call["shape.input_h"])
    return shapes.extents_of_images(touched, parameters, scratch)


def _window(call: kit.Call) -> kit.Window:
    """The window as the kernel walks; of its padding what is above and on the left."""
    (height, width), strides, dilations = (
        (call[f"shape.{name}_h"], call[f"shape.{name}_w"])
        for name in ("kernel", "stride", "dilation")
    )
    padding = kit.Padding(call["shape.pad_top"], call["shape.pad_left"], 0, 0)
    return kit.Window((height, width), strides, dilations, padding)


def _terms(op: kit.Operator[Convolution], call: kit.Call, ending: packing.Ending) -> kit.Terms:
    batches, channels = op.y.shape[0], op.y.shape[3]
    window, band = _window(call), call["shape.band"]
    in_h, in_w = call["shape.input_h"], call["shape.input_w"]
    out_h, out_w = call["shape.output_h"], call["shape.output_w"]
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.stride
    dilation_h, top = window.dilation[0], window.padding.top
    lines = kept = seen = 0
    for first in range(0, out_h, band):
        rows = min(band, out_h - first)
        begin = max(first * stride_h - top, 0)
        end = min((first + rows - 1) * stride_h - top + window.extent[0], in_h)
        had = min((first - 1) * stride_h - top + window.extent[0], in_h) if first else 0
        kept += max(had - begin, 0)
        lines += max(end - max(begin, had), 0)
    for row in range(out_h):
        reach = row * stride_h - top + dilation_h * np.arange(kernel_h)
        seen += int(((reach >= 0) & (reach < in_h)).sum())
    bands = -(-out_h // band)
    each = batches * channels
    path, slow = walks.slow_endings(op, ending)
    slow_outputs = batches * out_h * out_w * int(slow.sum())
    outputs = each * out_h * out_w - slow_outputs
    fours = _by_fours(window, out_h, in_h)
    line = _line(window, out_w)
    inside = min(max(line - window.padding.left, 0), in_w)
    terms: windows.Counts = {
        "call": 1.0,
        "channel": each,
        "band": each * bands,
        "word kept": each * kept * line / 2,
        "line": each * lines,
        "line word": each * lines * (inside // 4),
        "line byte": each * lines * (inside % 4),
        "narrow four": each * out_h * out_w / 4 * kit.is_narrow(op),
        "output": outputs,
        f"{path} output": slow_outputs,
    }
    if call.get("shape.transposed"):
        terms["transposed row"] = each * out_h
    taps = each * kernel_h
    if fours:
        steps = _steps(window, out_h, in_h)
        times, turns = each * -(-out_w // 4), -(-steps // _STEPS)
        kind = "unit" if stride_w == 1 else "strided"
        return terms | {
            "tap row": taps * turns,
            f"{kind} tap": taps * steps,
            "row of fours": each * out_h * turns,
            "four": times * out_h * turns,
            "four row": times * seen * turns,
            f"{kind} step": times * seen * steps,
        }
    twos = each * -(-out_w // 2)
    name = "dilated" if window.dilation[1] > 1 else "other"
    count = kernel_w if name == "dilated" else (kernel_w + 1) // 2
    return terms | {
        "tap row": taps,
        "strided tap": taps * ((kernel_w + 1) // 2),
        "row of twos": each * out_h,
        "two": twos * out_h,
        "two row": twos * seen,
        f"{name} step of two": twos * seen * count,
    }
