"""How often the loops of Thimble's convolution and pooling kernels turn.

Each function follows one kernel in `runtime_c/source`: what it counts is named after what is done
there. Windows that lie inside the image are gathered by a quicker path than those at its edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.common import Window, weight_zero_point
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.convolution.lowering import (
    conv2d_kernel,
    depthwise_band,
    depthwise_kernel,
    depthwise_line,
    turned_window,
    walks_columns,
)
from toolchain.ops.convolution.packing import SUMMED_TAPS
from toolchain.ops.convolution.partial_conv2d import PartialConv2D, is_pointwise
from toolchain.ops.pooling.common import pool_attributes

Terms = dict[str, float]
Flags = NDArray[np.bool_]
_LEAST_SLOW = 0.5
"""The least factor of a sum that takes no right shift (`packing.shift_code`)."""
_BY_ROWS = ("arm_convolve_1x1_s8", "arm_convolve_1_x_n_s8")
"""Kernels for Helium that multiply the pixels of each row apart."""


@dataclass(frozen=True)
class Along:
    """The windows along one axis of an image: how many, and the taps of all that lie inside it;
    `whole`: windows of which every tap does, `last`: those of them that end at the last pixel."""

    windows: int
    taps: int
    whole: int
    last: int


def along(
    size: int, windows: int, kernel: int, stride: int, dilation: int, before: int, margin: int
) -> Along:
    """`margin`: pixels beyond the kernel's last tap that a whole window must have."""
    taps = whole = last = 0
    for first in range(-before, windows * stride - before, stride):
        inside = range(max(-(first // dilation), 0) if first < 0 else 0, kernel)
        end = min(kernel, -(-(size - first) // dilation)) if first < size else 0
        taps += max(end - inside.start, 0)
        final = first + (kernel - 1) * dilation
        whole += first >= 0 and final + margin < size
        last += first >= 0 and final == size - 1
    return Along(windows, taps, whole, last)


def conv2d_terms(op: Op, graph: Graph, core: Core) -> tuple[str, Terms]:
    """Kernel and terms of a conv2d."""
    attributes = op.attributes
    assert isinstance(attributes, Conv2D)
    x, weights = graph.input(op, 0), graph.input(op, 1)
    _, height, width, depth = weights.shape
    window = Window((height, width), attributes.stride, attributes.dilation, attributes.padding)
    kernel = conv2d_kernel(op, graph, core, window, attributes.rounding)
    groups = x.shape[3] // depth
    return kernel, _convolution_terms(op, graph, kernel, window, groups, depth)


def partial_conv2d_terms(op: Op, graph: Graph) -> tuple[str, Terms]:
    """Kernel and terms of a partial_conv2d, whose sums are int32."""
    attributes = op.attributes
    assert isinstance(attributes, PartialConv2D)
    _, height, width, depth = graph.input(op, 1).shape
    window = Window((height, width), attributes.stride, attributes.dilation, attributes.padding)
    batches, out_h, out_w, channels = graph.output(op).shape
    pixels, words = out_h * out_w, -(-height * width * depth // 4)
    terms: Terms = {"call": 1.0}
    if is_pointwise(window) and depth % 4 == 0:
        kernel, batches, pixels = "thimble_partial_conv_1x1_s8", 1, batches * pixels
        terms["column word"] = 2 * -(-pixels // 2) * words
    else:
        kernel = "thimble_partial_conv_s8"
        terms |= _gathered(op, graph, window, depth, batches)
        terms["pixel"] = batches * pixels
    pairs = batches * -(-pixels // 2)
    blocks = pairs * -(-channels // 2)
    adds = bool(op.inputs[-1])
    return kernel, terms | {
        "pair of pixels": pairs,
        "block": blocks,
        "block word": blocks * words,
        "block added": blocks * adds,
        "lone channel": pairs * (channels % 2),
    }


def depthwise_conv2d_terms(op: Op, graph: Graph, core: Core) -> tuple[str, Terms]:
    """Kernel and terms of a depthwise_conv2d."""
    attributes = op.attributes
    assert isinstance(attributes, DepthwiseConv2D)
    _, height, width, _ = graph.input(op, 1).shape
    window = Window((height, width), attributes.stride, attributes.dilation, attributes.padding)
    kernel = depthwise_kernel(op, graph, core, window, attributes.rounding)
    if kernel == "thimble_convolve_s8":
        return kernel, _convolution_terms(op, graph, kernel, window, 1, 1)
    if kernel == "thimble_depthwise_conv_s8":
        return kernel, _depthwise_terms(op, graph, window)
    if kernel == "thimble_depthwise_conv_fours_s8":
        return kernel, _fours_terms(op, graph, window)
    return kernel, _helium_terms(op, graph, kernel, window, 1)


def is_narrow(op: Op, graph: Graph) -> bool:
    """Whether the kernel clamps to less than the whole range of int8."""
    activation = getattr(op.attributes, "activation", Activation.NONE)
    return clamp_range(activation, graph.output(op)) != (-128, 127)


SELDOM = ("slow", "float", "summed")
"""What the names of terms hold that few models have: fitted last, the others being known."""


def slow_channels(op: Op, graph: Graph) -> tuple[str, Flags]:
    """The path, and which output channels take it, of those that are not scaled by a quick shift.

    That is each whose factor is 0.5 or more (TFLite), and all that round as ONNX does.
    """
    x, weights, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    channels = y.shape[-1]
    if getattr(op.attributes, "rounding", Rounding.TFLITE) is Rounding.ONNX:
        return "float", np.ones(channels, np.bool_)
    factors = np.array(weights.q.scales) * (x.q.scale / y.q.scale)
    return "slow", np.broadcast_to(factors >= _LEAST_SLOW, channels)


def _convolution_terms(
    op: Op, graph: Graph, kernel: str, window: Window, groups: int, depth: int
) -> Terms:
    y = graph.output(op)
    batches, out_h, out_w, channels = y.shape
    if kernel.startswith("arm"):
        return _helium_terms(op, graph, kernel, window, depth)
    pixels = out_h * out_w
    filters = channels // groups
    times = batches * groups
    taps = window.kernel[0] * window.kernel[1] * depth
    words = -(-taps // 4)
    terms: Terms = {"call": 1.0}
    if kernel == "thimble_convolve_1x1_s8":
        pixels *= batches
        times = 1
        terms["gathered words"] = pixels * words
    elif kernel == "thimble_convolve_s4":
        terms |= _gathered(op, graph, window, depth, times, staged=True)
        fours = times * pixels * -(-filters // 4)
        terms |= {
            "group": times,
            "pixel": times * pixels,
            "block": fours,
            "block of eight taps": fours * -(-taps // 8),
            "narrow output": times * pixels * filters * is_narrow(op, graph),
            "lone output": times * pixels * (filters % 4),
        }
        return terms
    else:
        terms |= _gathered(op, graph, window, depth, times)
        terms["group"] = times
        if weight_zero_point(graph.input(op, 1)):
            terms["summed column"] = times * pixels
            terms["summed column word"] = times * pixels * words
            words += -(-words // SUMMED_TAPS)
    pairs, odd = pixels // 2, pixels % 2
    lone = filters % 2
    path, slow = slow_channels(op, graph)
    beside = slow.reshape(groups, filters)[:, : filters - lone].reshape(-1, 2).any(axis=1)
    slow_blocks = int(beside.sum()) / groups
    blocks = filters // 2 - slow_blocks
    terms |= {
        f"{path} block": times * (pairs + odd) * slow_blocks,
        f"{path} block word": times * (pairs + odd) * slow_blocks * words,
        "pixel": times * pixels,
        "pair of pixels": times * pairs,
        "block": times * pairs * blocks,
        "block word": times * pairs * blocks * words,
        "lone channel": times * pairs * lone,
        "lone channel word": times * pairs * lone * words,
        "last pixel": times * odd,
        "last pixel block": times * odd * blocks,
        "last pixel block word": times * odd * blocks * words,
        "last pixel lone channel": times * odd * lone,
        "last pixel lone channel word": times * odd * lone * words,
        "narrow block": times * pairs * blocks * is_narrow(op, graph),
        "narrow last pixel block": times * odd * blocks * is_narrow(op, graph),
    }
    return terms


def _gathered(
    op: Op, graph: Graph, window: Window, depth: int, times: int, *, staged: bool = False
) -> Terms:
    """Of the windows that are laid out as columns. `staged`: as bytes, and no further."""
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
    terms: Terms = {
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


def _depthwise_terms(op: Op, graph: Graph, window: Window) -> Terms:
    """`thimble_depthwise_conv_s8`: channel by channel, in bands of output rows."""
    x, y = graph.input(op, 0), graph.output(op)
    batches, out_h, out_w, channels = y.shape
    in_h, in_w = x.shape[1:3]
    turned = walks_columns(y.shape, window)
    if turned:
        window = turned_window(window)
        out_h, out_w, in_h, in_w = out_w, out_h, in_w, in_h
    band, line = depthwise_band(window, out_h, out_w), depthwise_line(window, out_w)
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.stride
    extent = window.extent[0]
    is_3x3 = window.kernel == (3, 3) and window.dilation == (1, 1) and stride_w <= 2
    band_lines = (band - 1) * stride_h + extent
    bands = -(-out_h // band)
    kept = max(band_lines - band * stride_h, 0)
    lines = image_lines = 0
    for first in range(0, out_h, band):
        rows = min(band, out_h - first)
        top = first * stride_h - window.padding.top
        begin = top + (kept if first else 0)
        end = top + band_lines - (band - rows) * stride_h
        lines += max(end - begin, 0)
        image_lines += max(min(end, in_h) - max(begin, 0), 0)
    before = min(window.padding.left, line)
    inside = min(max(line - before, 0), in_w)
    each = batches * channels
    path, slow = slow_channels(op, graph)
    slow_outputs = batches * out_h * out_w * int(slow.sum())
    outputs = each * out_h * out_w - slow_outputs
    terms: Terms = {
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
        "narrow": outputs * is_narrow(op, graph),
        "output": outputs,
        f"{path} output": slow_outputs,
    }
    if turned:
        terms["turned row"] = each * out_h
    if is_3x3:
        name = "3x3" if stride_w == 1 else "3x3 at stride 2"
        steps = -(-out_w // 2) if stride_w == 1 else out_w
        terms |= {f"row of {name}": each * out_h, f"step of {name}": each * out_h * steps}
    elif window.dilation[1] == 1 and stride_w == 1:
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
        name = "dilated step" if window.dilation[1] > 1 else "strided step"
        count = kernel_w if window.dilation[1] > 1 else (kernel_w + 1) // 2
        terms |= {
            "plain tap row": each * kernel_h,
            "plain tap": each * kernel_h * kernel_w,
            "row of twos": each * out_h,
            "two": each * out_h * twos,
            "two row": each * out_h * twos * kernel_h,
            name: each * out_h * twos * kernel_h * count,
        }
    return terms


def _fours_terms(op: Op, graph: Graph, window: Window) -> Terms:
    """`thimble_depthwise_conv_fours_s8`: four channels at a time, those windows gathered that leave
    the image."""
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
    path, slow = slow_channels(op, graph)
    slow_outputs = batches * out_h * out_w * int(slow.reshape(-1, 4).any(axis=1).sum())
    outputs = each * out_h * out_w
    terms: Terms = {
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
        "narrow": 4 * outputs * is_narrow(op, graph),
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


def _helium_terms(op: Op, graph: Graph, kernel: str, window: Window, depth: int) -> Terms:
    """CMSIS-NN's convolutions for Helium: vectors of 16 taps, or of four channels (depthwise).

    Pixels are multiplied four at a time: those of the whole image, or of one row.
    """
    x, y = graph.input(op, 0), graph.output(op)
    batches, out_h, out_w, channels = y.shape
    pixels = batches * out_h * out_w
    kernel_h, kernel_w = window.kernel
    rows = along(
        x.shape[1], out_h, kernel_h, window.stride[0], window.dilation[0], window.padding.top, 0
    )
    columns = along(
        x.shape[2], out_w, kernel_w, window.stride[1], window.dilation[1], window.padding.left, 0
    )
    seen = batches * rows.taps * columns.taps
    taps = kernel_h * kernel_w * depth
    if op.kind == "depthwise_conv2d":
        fours = -(-channels // 4)
        return {
            "call": 1.0,
            "pixel": pixels,
            "tap": pixels * kernel_h * kernel_w,
            "tap of sixteen channels": seen * -(-channels // 16),
            "blank tap": pixels * kernel_h * kernel_w - seen,
            "four channels": pixels * fours,
            "four channels of a tap": pixels * fours * kernel_h * kernel_w,
            "block of channels": -(-channels // 124),
        }
    vectors = -(-taps // 16)
    products = batches * out_h if kernel in _BY_ROWS else 1
    four_pixels = products * (pixels // products // 4)
    rest = products * (pixels // products % 4)
    terms: Terms = {
        "call": 1.0,
        "product": products,
        "channel": products * channels,
        "channel vector": products * channels * vectors,
        "channel of four pixels": four_pixels * channels,
        "vector of four pixels": four_pixels * channels * vectors,
        "channel of last pixel": rest * channels,
        "vector of last pixel": rest * channels * vectors,
    }
    if kernel != "arm_convolve_s8":
        return terms
    return terms | {
        "pixel": pixels,
        "output row": batches * out_h,
        "tap seen": seen,
        "tap vector seen": seen * -(-depth // 16),
        "tap blank": pixels * kernel_h * kernel_w - seen,
    }


def pool_terms(op: Op, graph: Graph, core: Core) -> tuple[str, Terms]:
    """Kernel and terms of the int8 poolings."""
    attributes = pool_attributes(op)
    x, y = graph.input(op, 0), graph.output(op)
    batches, out_h, out_w, channels = y.shape
    top, _, left, _ = attributes.padding
    height, width = attributes.filter_height, attributes.filter_width
    rows = along(x.shape[1], out_h, height, attributes.stride_height, 1, top, 0)
    columns = along(x.shape[2], out_w, width, attributes.stride_width, 1, left, 0)
    pixels = batches * out_h * out_w
    lines = batches * rows.taps * out_w
    taps = batches * rows.taps * columns.taps
    sixteens, fours, rest = channels // 16, channels % 16 // 4, channels % 4
    terms: Terms = {"call": 1.0, "row": batches * out_h, "pixel": pixels}
    if op.kind == "max_pool2d":
        kernel = "arm_max_pool_s8" if core.mve else "thimble_max_pool_s8"
        if core.mve:
            vectors = -(-channels // 16)
            terms |= {"line": lines, "tap": taps, "first vector": pixels * vectors}
            terms |= {"vector": (taps - pixels) * vectors, "clamped": -(-pixels * channels // 16)}
            return kernel, terms
        terms |= {
            "sixteen": pixels * sixteens,
            "sixteen row": lines * sixteens,
            "sixteen tap": taps * sixteens,
            "four": pixels * fours,
            "four row": lines * fours,
            "four tap": taps * fours,
        }
    else:
        lifted = attributes.lift or not core.mve
        kernel = "thimble_average_pool_s8" if lifted else "arm_avgpool_s8"
        if not lifted:
            vectors = -(-channels // 16)
            terms |= {"vector": pixels * vectors, "line": lines * vectors, "tap": taps * vectors}
            return kernel, terms
        fours = channels // 4
        terms |= {
            "four": pixels * fours,
            "four row": lines * fours,
            "four tap": taps * fours,
            "lone group": pixels * bool(rest),
        }
    return kernel, terms | {
        "lone": pixels * rest,
        "lone row": lines * rest,
        "lone tap": taps * rest,
    }
