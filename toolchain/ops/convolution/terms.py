"""Cost terms of the convolution kernels: how often their loops run.

Each function follows the loops of one kernel in `runtime_c/source/convolution` or of CMSIS-NN's for
Helium, and names each count after what the loop does. Kernels gather windows that lie inside the
image by a quicker path than those at its edges, so the two are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.common import convolution_of, weight_zero_point
from toolchain.ops.convolution.extents import BAND_LINES, FOURS, FOURS_LINES, LINES_3X3
from toolchain.ops.convolution.packing import (
    PACKED_SUM,
    PACKED_TAPS,
    SUMMED_TAPS,
    VECTOR_BYTES,
    Ending,
    Int8,
)
from toolchain.ops.kernel import Call, Terms
from toolchain.ops.terms import Along, along, is_narrow, slow_channels
from toolchain.ops.window import Window

Counts = dict[str, float]
_LEAST_INT8 = -128
Slow = NDArray[np.bool_]
"""Of each channel: whether it takes a slow path."""
_BY_ROWS = ("arm_convolve_1x1_s8", "arm_convolve_1_x_n_s8")
"""Kernels for Helium that multiply the pixels of each row separately."""
_HELIUM_CHANNELS = 124
"""CMSIS-NN's CH_IN_BLOCK_MVE."""
_FOUR = 4
"""Pixels that the loops of 3x3 depthwise kernels take at a time. A core that guesses at branches is
wrong at the end of a loop that turned more than once."""


def own_conv_terms(
    op: Op, graph: Graph, function: str, window: Window, groups: int, depth: int, at_once: int
) -> Terms:
    """`thimble_convolve_s8`, `_1x1_s8` and `_inside_s8`, and the same of four bits (`_s4`), whose
    blocks are of four channels. A filter reads `depth` channels. `at_once` windows are expanded
    together: the last ones, if they are fewer, as if they were as many, but one alone. Those of
    four bits count by pairs.
    """
    batches, out_h, out_w, channels = graph.output(op).shape
    pixels = out_h * out_w
    filters = channels // groups
    times = batches * groups
    taps = window.kernel[0] * window.kernel[1] * depth
    words = -(-taps // 4)
    terms: Counts = {"call": 1.0}
    if function.startswith("thimble_convolve_1x1_"):
        pixels *= batches
        times = 1
        terms["gathered words"] = pixels * words
    else:
        if function == "thimble_convolve_s8" and _rows_are_words(op, graph, window, depth):
            terms |= {"word window": times * pixels, "word row": times * pixels * window.kernel[0]}
        else:
            terms |= gathered_terms(op, graph, window, depth, times)
        terms["group"] = times
        if weight_zero_point(graph.input(op, 1)):
            terms["summed column"] = times * pixels
            terms["summed column word"] = times * pixels * words
            words += -(-words // SUMMED_TAPS)
    if function.endswith("_s4"):
        return terms | _four_bit_terms(op, graph, times, pixels, words, groups)
    lone = filters % 2
    path, slow = slow_channels(op, graph, once=True)
    beside = slow.reshape(groups, filters)[:, : filters - lone].reshape(-1, 2).any(axis=1)
    slow_blocks = int(beside.sum()) / groups
    blocks = filters // 2 - slow_blocks
    runs, odd = pixels // at_once + (pixels % at_once > 1), int(pixels % at_once == 1)
    of = f" of {at_once} pixels"
    terms |= {
        f"{path} block": times * pixels * slow_blocks,
        f"{path} block word": times * pixels * slow_blocks * words,
        "pixel": times * pixels,
        f"run{of}": times * runs,
        f"block{of}": times * runs * blocks,
        f"block word{of}": times * runs * blocks * words,
        f"lone channel{of}": times * runs * lone,
        f"lone channel word{of}": times * runs * lone * words,
        "last pixel": times * odd,
        "last pixel block": times * odd * blocks,
        "last pixel block word": times * odd * blocks * words,
        "last pixel lone channel": times * odd * lone,
        "last pixel lone channel word": times * odd * lone * words,
        f"block rounded twice{of}": times * runs * blocks * _rounded_twice(op, graph),
        f"narrow block{of}": times * runs * blocks * is_narrow(op, graph),
        "narrow last pixel block": times * odd * blocks * is_narrow(op, graph),
    }
    return terms


def _rounded_twice(op: Op, graph: Graph) -> bool:
    """Whether most sums are: TFLite's rounding, of outputs that may be below their zero point."""
    tflite = getattr(op.attributes, "rounding", Rounding.TFLITE) is Rounding.TFLITE
    return tflite and graph.output(op).q.zero_point > _LEAST_INT8


def _rows_are_words(op: Op, graph: Graph, window: Window, depth: int) -> bool:
    """Whether each row of a window is one word, of several pixels."""
    x = graph.input(op, 0)
    runs = window.dilation[1] == 1 and depth == x.shape[3] and x.shape[2] * depth >= 4
    return runs and depth < 4 and window.kernel[1] * depth == 4


def _lane_windows(op: Op, graph: Graph, window: Window) -> dict[str, float]:
    """Windows copied as bytes, two at a time, times four channels in vectors."""
    batches, out_h, out_w, channels = graph.output(op).shape
    x, pixels = graph.input(op, 0).shape, out_h * out_w
    kernel_h, kernel_w = window.kernel
    rows, columns = (
        along(
            x[1 + axis],
            graph.output(op).shape[1 + axis],
            window.kernel[axis],
            window.stride[axis],
            window.dilation[axis],
            (window.padding.top, window.padding.left)[axis],
            0,
        )
        for axis in (0, 1)
    )
    inside = rows.whole * columns.whole if kernel_w == 1 or window.dilation[1] == 1 else 0
    taps, run = kernel_h * kernel_w * x[3], -(-kernel_w * x[3] // VECTOR_BYTES)
    pairs, blocks = batches * (pixels // 2 + pixels % 2), -(-channels // 4)
    return {
        "call": 1.0,
        "pair of pixels": pairs,
        "inside row": batches * inside * kernel_h,
        "inside vector": batches * inside * kernel_h * run,
        "edge row": batches * (pixels - inside) * kernel_h,
        "edge vector": batches * (pixels - inside) * kernel_h * run,
        "block": pairs * blocks,
        "uneven block": pairs * blocks * bool(taps % VECTOR_BYTES),
        "block vector": pairs * blocks * (taps // VECTOR_BYTES),
    }


def lanes_conv_terms(op: Op, graph: Graph, window: Window) -> Terms:
    """`thimble_convolve_lanes_s8`, and its `_offset_`, which sums the windows, too."""
    terms, weights = _lane_windows(op, graph, window), graph.input(op, 1)
    path, slow = slow_channels(op, graph, once=True)
    vectors = -(-weights.elements // weights.shape[0] // VECTOR_BYTES)
    summed = 2 * terms["pair of pixels"] * vectors if weight_zero_point(weights) else 0.0
    return terms | {
        "narrow block": terms["block"] * is_narrow(op, graph),
        "twice block": terms["block"] * (graph.output(op).q.zero_point > -128),
        "summed vector": summed,
        f"{path} channel": terms["pair of pixels"] * int(slow.sum()),
    }


def partial_lanes_terms(op: Op, graph: Graph, window: Window) -> Terms:
    """`thimble_partial_conv_lanes_s8`, whose sums are int32."""
    terms = _lane_windows(op, graph, window)
    return terms | {
        "block added": terms["block"] * bool(op.inputs[-1]),
        "lone channel": terms["pair of pixels"] * (graph.output(op).shape[3] % 4),
    }


def transposed_lanes_terms(op: Op, graph: Graph, window: Window) -> Terms:
    """`thimble_transpose_conv_lanes_s8`: pairs of outputs that agree modulo the strides."""
    batches, out_h, out_w, channels = graph.output(op).shape
    depth, stride, pads = graph.input(op, 0).shape[3], window.stride, window.padding
    fours = -(-channels // 4)
    counts = dict.fromkeys(("run", "pair of pixels", "edge row", "edge vector", "block"), 0.0)
    counts |= {"call": 1.0, "uneven block": 0.0, "block vector": 0.0}
    for down in range(stride[0]):
        rows = max(-(-(window.kernel[0] - down) // stride[0]), 1)
        lines = batches * len(range((down - pads.top) % stride[0], out_h, stride[0]))
        for across in range(stride[1]):
            columns = max(-(-(window.kernel[1] - across) // stride[1]), 1)
            pixels = len(range((across - pads.left) % stride[1], out_w, stride[1]))
            taps, pairs = rows * columns * depth, lines * -(-pixels // 2)
            counts["run"] += lines
            counts["pair of pixels"] += pairs
            counts["edge row"] += lines * pixels * rows
            counts["edge vector"] += lines * pixels * rows * -(-columns * depth // VECTOR_BYTES)
            counts["block"] += pairs * fours
            counts["uneven block"] += pairs * fours * bool(taps % VECTOR_BYTES)
            counts["block vector"] += pairs * fours * (taps // VECTOR_BYTES)
    return counts


def depthwise_lanes_terms(op: Op, graph: Graph, window: Window) -> Terms:
    """`thimble_depthwise_lanes_s8`: four channels of a row, four outputs at a time."""
    batches, out_h, out_w, channels = graph.output(op).shape
    (kernel_h, kernel_w), stride = window.kernel, window.stride
    blocks = batches * channels // 4
    columns = max(out_w, 4)
    fours = blocks * out_h * -(-columns // 4)
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
        **_lane_ending(op, graph, batches * out_h * out_w),
    }


def depthwise_windows_terms(
    op: Op, graph: Graph, window: Window, strip: int, at_once: int
) -> Terms:
    """`thimble_depthwise_windows_lanes_s8`: strips of `strip` outputs of four channels, `at_once`
    rows of them together."""
    batches, out_h, out_w, channels = graph.output(op).shape
    width, stride, left = graph.input(op, 0).shape[2], window.stride, window.padding.left
    blocks = batches * channels // 4
    pairs = out_h // 2 if at_once == 2 else 0
    turns = pairs + (out_h - 2 * pairs)
    outputs = [min(strip, out_w - column) for column in range(0, out_w, strip)]
    fours = whole = 0
    for at, count in enumerate(outputs):
        first = at * strip * stride[1] - left
        seen = -(-((count - 1) * stride[1] + 4) // 4)
        fours += seen
        whole += sum(0 <= first + 4 * four <= width - 4 for four in range(seen))
    edges = (-(-window.padding.top // stride[0]) + 1) // at_once + 1
    inside = max(turns - edges, 0)
    return {
        "call": 1.0,
        "block": blocks,
        "turn": blocks * turns,
        "strip": blocks * turns * len(outputs),
        "whole columns": blocks * inside * whole,
        "edge columns": blocks * (turns * fours - inside * whole),
        "window": 4 * blocks * out_w * (turns - pairs),
        "two windows": 4 * blocks * out_w * pairs,
        "output": blocks * out_h * out_w,
        **_lane_ending(op, graph, batches * out_h * out_w),
    }


def _lane_ending(op: Op, graph: Graph, pixels: int) -> Terms:
    """Fours of channels whose sums are not rounded once, or not scaled by a quick right shift."""
    path, slow = slow_channels(op, graph, once=True)
    slow_blocks = int(slow.reshape(-1, 4).any(axis=1).sum())
    twice = graph.output(op).q.zero_point > -128 or is_narrow(op, graph)
    return {
        "twice four": pixels * (len(slow) // 4 - slow_blocks) * twice,
        f"{path} four": pixels * slow_blocks,
    }


def packed_conv_terms(op: Op, graph: Graph, window: Window, filters: Int8) -> Terms:
    """`thimble_convolve_packed_s8`, four pixels and four channels at a time.

    Of `filters` [channels, taps] there are as many runs as the largest sum of magnitudes in a block
    needs, and as the longest runs leave; more than these where sums do not come out even.
    """
    batches, out_h, out_w, channels = graph.output(op).shape
    taps, depth = filters.shape[1], graph.input(op, 1).shape[3]
    sums = np.abs(filters.astype(np.int16)).sum(axis=1, dtype=np.int64)
    largest = np.maximum.reduceat(sums, np.arange(0, channels, 4))
    runs = float(np.maximum(largest / PACKED_SUM, taps / PACKED_TAPS).sum())
    fours = batches * -(-out_h * out_w // 4)
    outputs = batches * out_h * out_w * channels
    blocks = -(-channels // 4)
    path, slow = slow_channels(op, graph)
    slow_outputs = batches * out_h * out_w * int(slow.sum())
    rows, columns = walked(op, graph, window)
    joined = window.dilation[1] == 1 or window.kernel[1] == 1
    whole = columns.whole * rows.taps if joined else 0
    pieces = whole + (rows.windows * columns.windows * window.kernel[0] - whole) * window.kernel[1]
    return {
        "call": 1.0,
        "four pixels": fours,
        "piece": batches * pieces / 2,
        "four taps of two pixels": batches * pieces / 2 * (depth // 4),
        "tap of two pixels": 2 * fours * taps,
        "block": fours * blocks,
        "run": fours * runs,
        "block tap": fours * blocks * taps,
        "output": outputs - slow_outputs,
        f"{path} output": slow_outputs,
        "narrow output": outputs * is_narrow(op, graph),
    }


def _four_bit_terms(
    op: Op, graph: Graph, times: int, pixels: int, words: int, groups: int
) -> Counts:
    """Of blocks of four channels, of which the last of a group may be smaller."""
    channels = graph.output(op).shape[3] // groups
    pairs, odd, lone = pixels // 2, pixels % 2, channels % 4
    path, slow = slow_channels(op, graph, once=True)
    beside = slow.reshape(groups, channels)[:, : channels - lone].reshape(-1, 4).any(axis=1)
    slow_blocks = int(beside.sum()) / groups
    blocks = -(-channels // 4)
    narrow = (channels // 4 - slow_blocks) * is_narrow(op, graph)
    return {
        "pixel": times * pixels,
        "pair of pixels": times * pairs,
        "pair of pixels word": times * pairs * words,
        "block": times * pairs * blocks,
        "block rounded twice": times * pairs * blocks * _rounded_twice(op, graph),
        "block word": times * pairs * blocks * words,
        "narrow block": times * pairs * narrow,
        "lone channel": times * pairs * lone,
        f"{path} block": times * pairs * slow_blocks,
        "last pixel": times * odd,
        "last pixel word": times * odd * words,
        "last pixel block": times * odd * blocks,
        "last pixel block word": times * odd * blocks * words,
    }


def partial_conv_terms(op: Op, graph: Graph, function: str, window: Window) -> Terms:
    """`thimble_partial_conv_s8` and `_1x1_s8`, whose sums are int32."""
    _, height, width, depth = graph.input(op, 1).shape
    batches, out_h, out_w, channels = graph.output(op).shape
    pixels, words = out_h * out_w, -(-height * width * depth // 4)
    terms: Counts = {"call": 1.0}
    if function == "thimble_partial_conv_1x1_s8":
        batches, pixels = 1, batches * pixels
        terms["column word"] = 2 * -(-pixels // 2) * words
    else:
        terms |= gathered_terms(op, graph, window, depth, batches)
        terms["pixel"] = batches * pixels
    pairs = batches * -(-pixels // 2)
    blocks = pairs * -(-channels // 2)
    adds = bool(op.inputs[-1])
    return terms | {
        "pair of pixels": pairs,
        "block": blocks,
        "block word": blocks * words,
        "block added": blocks * adds,
        "lone channel": pairs * (channels % 2),
    }


def slow_endings(op: Op, ending: Ending) -> tuple[str, Slow]:
    """The same as `slow_channels`, of parameters whose codes say so by their sign."""
    path = "float" if convolution_of(op).rounding is Rounding.ONNX else "slow"
    return path, ending.code < 0


def depthwise_line_terms(
    op: Op, graph: Graph, call: Call, line: int, slow_ones: tuple[str, Slow]
) -> Terms:
    """`thimble_depthwise_conv_s8`: channel by channel, in bands of output rows.

    `line` is the length of an image row in scratch, in int16 values.
    """
    batches, channels = graph.output(op).shape[0], graph.output(op).shape[3]
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
    path, slow = slow_ones
    slow_outputs = batches * out_h * out_w * int(slow.sum())
    outputs = each * out_h * out_w - slow_outputs
    terms: Counts = {
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
        "narrow four": each * out_h * out_w / 4 * is_narrow(op, graph),
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


@dataclass(frozen=True)
class Endings:
    """How many channels of a 3x3 depthwise convolution end in each of the kernel's ways: rounded
    once, rounded twice, and by the `path` of `slow_channels`.
    """

    once: int
    twice: int
    slow: int
    path: str


def depthwise_3x3_terms(op: Op, graph: Graph, call: Call, endings: Endings) -> Terms:
    """`thimble_depthwise_3x3_s8`, `_band_s8` and `_band_step_2_s8`: channel by channel, from
    lines in scratch.
    """
    turns = call.function == "thimble_depthwise_3x3_s8"
    batches, channels = graph.output(op).shape[0], graph.output(op).shape[3]
    out_h, out_w = call["shape.output_h"], call["shape.output_w"]
    stride_w, pad_left = call["shape.stride_w"], call["shape.pad_left"]
    inside = min(max(2 * _pairs_3x3(call) - pad_left, 0), call["shape.input_w"])
    bands = 1 if turns else -(-out_h // call["shape.band"])
    found = _lines_in_turn if turns else _lines_of_four if call.get("shape.at_once") else _lines
    at = " at stride 2" if stride_w == 2 else ""
    quick = endings.once + endings.twice
    terms: Counts = {
        "call": 1.0,
        "channel": batches * channels * bands,
        "channel rounded twice": batches * endings.twice * bands,
        "row": batches * quick * out_h,
        "row of several fours": batches * quick * out_h * (out_w >= 2 * _FOUR),
        "narrow four": batches * channels * out_h * out_w / 4 * is_narrow(op, graph),
    }
    terms |= found(call, batches * channels, inside)
    for how, count in (("", endings.once), (" rounded twice", endings.twice)):
        rows = batches * count * out_h
        terms |= {
            f"four{at}{how}": rows * (out_w // 4),
            f"two{at}{how}": rows * (out_w % 4 // 2),
            f"lone output{how}": rows * (out_w % 2),
        }
    slow, path = batches * endings.slow * out_h, endings.path
    return terms | {
        f"{path} row": slow,
        f"{path} output": slow * out_w,
    }


def _pairs_3x3(call: Call) -> int:
    """Words of a line in scratch that hold pixels."""
    return -(-call["shape.output_w"] // 2) * call["shape.stride_w"] + 1


def _lines_in_turn(call: Call, channels: int, inside: int) -> Counts:
    """Of three lines that take turns: each image row becomes a line once."""
    odd, pairs = call["shape.pad_left"] % 2 if inside else 0, _pairs_3x3(call)
    tops = (
        row * call["shape.stride_h"] - call["shape.pad_top"]
        for row in range(call["shape.output_h"])
    )
    seen = {top + row for top in tops for row in range(LINES_3X3)}
    lines = sum(0 <= row < call["shape.input_h"] for row in seen)
    blank = len(seen) - lines
    rest = inside - odd
    return {
        "first blank": LINES_3X3 * pairs,
        "line": channels * lines,
        "line of several fours": channels * lines * (rest >= 2 * _FOUR),
        "line four": channels * lines * (rest // 4),
        "line two": channels * lines * (rest % 4 // 2),
        "line one": channels * lines * (rest % 2 + odd),
        "blank line": channels * blank,
        "blank line pair": channels * blank * pairs,
    }


def _bands(call: Call, channels: int, lengths: tuple[int, ...], at_once: int) -> tuple[int, Counts]:
    """Image rows that a kernel by bands reads for a channel, and the terms of the rest that it does
    with lines. `at_once`: channels whose lines lie together, in lines of the first of `lengths`
    bytes that is enough.
    """
    pitch = at_once * next(n for n in lengths if 4 * _pairs_3x3(call) <= n) / 16
    out_h, band, stride = (call[f"shape.{name}"] for name in ("output_h", "band", "stride_h"))
    in_h, times = call["shape.input_h"], channels / at_once
    lines = blank = kept = of_rows = of_lines = 0
    for row in range(0, out_h, band):
        had = max(LINES_3X3 - stride, 0) if row else 0
        top = row * stride - call["shape.pad_top"] + had
        rows = min(band, out_h - row)
        wanted = (rows - 1) * stride + LINES_3X3 - had
        seen = max(min(top + wanted, in_h) - max(top, 0), 0)
        lines, blank, kept = lines + seen, blank + wanted - seen, kept + had
        of_rows, of_lines = of_rows + (rows > 1), of_lines + (seen > 1)
    bands = -(-out_h // band)
    several = times * (bands > 1)
    return lines, {
        "first blank": ((band - 1) * stride + LINES_3X3) * pitch,
        "band": times * bands,
        "band of several lines": times * of_lines,
        "channel of several rows": channels * of_rows,
        "begun band": several * bands,
        "four words blank": several * blank * pitch,
        "four words kept": several * kept * pitch,
    }


def _lines(call: Call, channels: int, inside: int) -> Counts:
    """Of bands of lines that are made channel by channel."""
    lines, terms = _bands(call, channels, BAND_LINES, 1)
    return terms | {
        "line": channels * lines,
        "line of several fours": channels * lines * (inside >= 2 * _FOUR),
        "line four": channels * lines * (inside // 4),
        "line two": channels * lines * (inside % 4 // 2),
        "line one": channels * lines * (inside % 2),
    }


def _lines_of_four(call: Call, channels: int, inside: int) -> Counts:
    """Of bands of lines that are made of four channels at once."""
    lines, terms = _bands(call, channels, FOURS_LINES, FOURS)
    odd = call["shape.pad_left"] % 2 if inside else 0
    each, pairs = channels / FOURS * lines, (inside - odd) // 2
    return terms | {
        "line of four channels": each,
        "line of several pairs": each * (pairs > 1),
        "first pixel of four channels": each * odd,
        "pair of pixels of four channels": each * pairs,
        "last pixel of four channels": each * ((inside - odd) % 2),
    }


def channel_block_terms(op: Op, graph: Graph, window: Window, slow_ones: tuple[str, Slow]) -> Terms:
    """`thimble_depthwise_conv_blocks_s8`: four channels at a time. It gathers the windows that
    reach beyond the image and reads the others in place.
    """
    x, y = graph.input(op, 0), graph.output(op)
    batches, out_h, out_w, channels = y.shape
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.stride
    (dilation_h, dilation_w), pad = window.dilation, window.padding
    rows = along(x.shape[1], out_h, kernel_h, stride_h, dilation_h, pad.top, 0)
    columns = along(x.shape[2], out_w, kernel_w, stride_w, dilation_w, pad.left, 0)
    whole = rows.whole if columns.whole else 0
    left = min(-(-pad.left // stride_w), out_w)
    sides = (left, out_w - left - columns.whole)
    edge = whole * sum(sides) + (out_h - whole) * out_w
    runs = whole * sum(-(-side // 4) for side in sides) + (out_h - whole) * -(-out_w // 4)
    each = batches * channels // 4
    path, slow = slow_ones
    slow_outputs = batches * out_h * out_w * int(slow.reshape(-1, 4).any(axis=1).sum())
    outputs = each * out_h * out_w
    terms: Counts = {
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
        "narrow four": outputs * is_narrow(op, graph),
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


def helium_depthwise_terms(op: Op, graph: Graph, window: Window) -> Terms:
    """`arm_depthwise_conv_s8_opt` on Helium: windows are gathered, 124 channels at a time, and
    multiplied four pixels at a time, in vectors of four channels.
    """
    batches, out_h, out_w, channels = graph.output(op).shape
    pixels, seen = batches * out_h * out_w, seen_taps(op, graph, window)
    taps, blocks = window.kernel[0] * window.kernel[1], -(-channels // _HELIUM_CHANNELS)
    each = [min(_HELIUM_CHANNELS, channels - i * _HELIUM_CHANNELS) for i in range(blocks)]
    fours, sixteens = (sum(-(-c // width) for c in each) for width in (4, 16))
    quads, rest = batches * (out_h * out_w // 4), batches * (out_h * out_w % 4)
    return {
        "call": 1.0,
        "block of channels": blocks,
        "pixel": pixels * blocks,
        "tap": pixels * taps * blocks,
        "tap of sixteen channels": seen * sixteens,
        "blank tap": (pixels * taps - seen) * blocks,
        "blank tap of sixteen channels": (pixels * taps - seen) * sixteens,
        "four pixels": quads * blocks,
        "four channels of four pixels": quads * fours,
        "four channels of a tap of four pixels": quads * fours * taps,
        "four channels of a last pixel": rest * fours,
        "four channels of a tap of a last pixel": rest * fours * taps,
    }


def helium_conv_terms(op: Op, graph: Graph, function: str, window: Window, depth: int) -> Terms:
    """CMSIS-NN's convolutions on Helium: vectors of 16 taps.

    Pixels are multiplied four at a time, over the whole image or over one row.
    """
    batches, out_h, out_w, channels = graph.output(op).shape
    pixels, taps = batches * out_h * out_w, window.kernel[0] * window.kernel[1]
    vectors = -(-taps * depth // 16)
    products = batches * out_h if function in _BY_ROWS else 1
    four_pixels = products * (pixels // products // 4)
    rest = products * (pixels // products % 4)
    terms: Counts = {
        "call": 1.0,
        "product": products,
        "channel": products * channels,
        "channel vector": products * channels * vectors,
        "channel of four pixels": four_pixels * channels,
        "vector of four pixels": four_pixels * channels * vectors,
        "channel of last pixel": rest * channels,
        "vector of last pixel": rest * channels * vectors,
    }
    if function != "arm_convolve_s8":
        return terms
    seen = seen_taps(op, graph, window)
    return terms | {
        "pixel": pixels,
        "output row": batches * out_h,
        "tap seen": seen,
        "tap vector seen": seen * -(-depth // 16),
        "tap blank": pixels * taps - seen,
    }


def seen_taps(op: Op, graph: Graph, window: Window) -> int:
    """Taps of all windows that lie inside the image."""
    batches = graph.output(op).shape[0]
    rows, columns = walked(op, graph, window)
    return batches * rows.taps * columns.taps


def walked(op: Op, graph: Graph, window: Window) -> tuple[Along, Along]:
    """The windows along the rows and along the columns of the image."""
    x, y, pad = graph.input(op, 0), graph.output(op), window.padding
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.stride
    dilation_h, dilation_w = window.dilation
    return (
        along(x.shape[1], y.shape[1], kernel_h, stride_h, dilation_h, pad.top, 0),
        along(x.shape[2], y.shape[2], kernel_w, stride_w, dilation_w, pad.left, 0),
    )


def gathered_terms(
    op: Op, graph: Graph, window: Window, depth: int, times: int, *, staged: bool = False
) -> Counts:
    """Terms of the windows that are copied to columns. With `staged` they are copied as bytes and
    not widened.
    """
    x, y = graph.input(op, 0), graph.output(op)
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.stride
    dilation_h, dilation_w = window.dilation
    row_bytes = kernel_w * depth
    runs = kernel_w == 1 or (dilation_w == 1 and depth == x.shape[3])
    uneven = row_bytes % 4 != 0
    rows = along(x.shape[1], y.shape[1], kernel_h, stride_h, dilation_h, window.padding.top, 0)
    walk = (x.shape[2], y.shape[2], kernel_w, stride_w, dilation_w, window.padding.left)
    columns = along(*walk, 0)
    whole = 0
    if runs and x.shape[2] * x.shape[3] >= 4 and not staged:
        whole = rows.whole * columns.whole
        if uneven:  # three bytes more are read, in the last line too
            whole -= rows.last * (columns.whole - along(*walk, -(-3 // x.shape[3])).whole)
    edge = rows.windows * columns.windows - whole
    whole_rows = whole * kernel_h
    seen_rows = rows.taps * columns.windows - whole_rows
    seen_taps = rows.taps * columns.taps - whole_rows * kernel_w
    blank_taps = edge * kernel_h * kernel_w - seen_taps
    words = -(-kernel_h * kernel_w * depth // 4)
    terms: Counts = {
        "edge window": edge,
        "edge row": edge * kernel_h,
        "edge row in image": seen_rows,
    }
    if uneven or depth % 4 or staged:
        contiguous = dilation_w == 1 and depth == x.shape[3]
        terms["edge byte filled"] = blank_taps * depth
        if contiguous:
            per_row = seen_taps * depth / seen_rows if seen_rows else 0
            terms["edge byte run"] = seen_rows
            terms["edge word copied"] = seen_rows * (per_row // 4)
            terms["edge byte copied"] = seen_rows * (per_row % 4)
        else:
            terms["edge byte run"] = seen_taps
            terms["edge word copied"] = seen_taps * (depth // 4)
            terms["edge byte copied"] = seen_taps * (depth % 4)
        if not staged:
            terms["column"] = edge if uneven else edge * kernel_h
            terms["column word"] = edge * words
    else:
        terms["edge word filled"] = blank_taps * depth / 4
        terms["column"] = seen_rows if runs else seen_taps
        terms["column word"] = seen_taps * depth / 4
    if whole and uneven:
        terms["inside row staged"] = whole_rows
        terms["inside word staged"] = whole_rows * -(-row_bytes // 4)
        terms["column"] += whole
        terms["column word"] += whole * words
    elif whole:
        terms["inside row"] = whole_rows
        terms["column"] += whole_rows
        terms["column word"] += whole_rows * row_bytes / 4
    return {name: times * count for name, count in terms.items()}
