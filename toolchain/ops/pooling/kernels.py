"""Kernels of max and average pools: their calls, the bytes these touch, and their cost terms."""

from __future__ import annotations

import math

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import clamp_range
from toolchain.ops.cmsis_structs import context, dims, limits, tile
from toolchain.ops.convolution.window_f32 import image_f32, reach_f32, window_f32
from toolchain.ops.extents import Extents, whole, widths, window_reach
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Struct,
    Terms,
    Touched,
)
from toolchain.ops.pooling.common import pool_attributes, pool_lead_bytes, pool_window
from toolchain.ops.terms import Along, along

_AVERAGES = "arm_avgpool"
_OUR_AVERAGE = "thimble_average_pool_s8"


def pool_kernel(op: Op, graph: Graph, function: str) -> Kernel:
    """A call of `function`, one of Thimble's pools. Averages also take the operator's `lift`."""
    attributes, x, y = pool_attributes(op), graph.input(op, 0), graph.output(op)
    low, high = clamp_range(attributes.activation, y)
    params: dict[str, Argument] = {
        "batches": x.shape[0],
        "input_h": x.shape[1],
        "input_w": x.shape[2],
        "output_h": y.shape[1],
        "output_w": y.shape[2],
        "channels": x.shape[3],
        "kernel_h": attributes.filter_height,
        "kernel_w": attributes.filter_width,
        "stride_h": attributes.stride_height,
        "stride_w": attributes.stride_width,
        "pad_top": attributes.padding.top,
        "pad_left": attributes.padding.left,
        "min": low,
        "max": high,
    }
    lift: dict[str, Argument] = {"lift": attributes.lift} if function == _OUR_AVERAGE else {}
    call = Call(
        function,
        {
            "params": Struct("thimble_pool_params", params),
            **lift,
            "input": Input(0),
            "output": Output(0),
        },
    )
    return Kernel(
        (call,),
        _extents,
        find_overlaps=lambda: _overlaps(op, graph, reads_first=True),
        find_terms=lambda: _our_terms(call),
    )


def cmsis_pool_kernel(op: Op, graph: Graph, core: Core, function: str) -> Kernel:
    """A call of `function`, one of CMSIS-NN's pools.

    Averages need the scratch that CMSIS-NN's `get_buffer_size` functions give, and read a window
    whole before they write the average. A maximum is kept in the output pixel while the window is
    read, so its output must not lie on its window.
    """
    attributes, x, y = pool_attributes(op), graph.input(op, 0), graph.output(op)
    low, high = clamp_range(attributes.activation, y)
    scratch_bytes = _sums_bytes(function, y.shape[3], core)
    params = {
        "stride": tile(attributes.stride_height, attributes.stride_width),
        "padding": tile(attributes.padding.top, attributes.padding.left),
        "activation": limits(low, high),
    }
    call = Call(
        function,
        {
            "ctx": context(scratch_bytes),
            "params": Struct("cmsis_nn_pool_params", params),
            "input_dims": dims(*x.shape),
            "src": Input(0),
            "filter_dims": dims(h=attributes.filter_height, w=attributes.filter_width),
            "output_dims": dims(*y.shape),
            "dst": Output(0),
        },
        status=True,
    )
    reads_first = function.startswith(_AVERAGES)
    return Kernel(
        (call,),
        lambda touched: _cmsis_extents(touched, core),
        scratch_bytes=scratch_bytes,
        find_overlaps=lambda: _overlaps(op, graph, reads_first),
        find_terms=None if widths(function)[0] > 1 else lambda: _cmsis_terms(call, core),
    )


def float_pool_kernel(op: Op, graph: Graph, function: str) -> Kernel:
    """A call of `function`, one of Thimble's float32 pools."""
    x, y, activation = graph.input(op, 0), graph.output(op), pool_attributes(op).activation
    window = window_f32(x.shape, y.shape, pool_window(op), activation)
    call = Call(function, {"window": window, "input": Input(0), "output": Output(0)})
    return Kernel(
        (call,), _float_extents, find_overlaps=lambda: _overlaps(op, graph, reads_first=True)
    )


def _sums_bytes(function: str, channels: int, core: Core) -> int:
    """CMSIS-NN's averages sum in int32, one for each channel, on cores with DSP, not Helium."""
    sums = function.startswith(_AVERAGES) and core.dsp and not core.mve
    return 4 * channels if sums else 0


def _overlaps(op: Op, graph: Graph, reads_first: bool) -> tuple[SafeOverlap, ...]:
    return (SafeOverlap(0, 0, pool_lead_bytes(op, graph, reads_first=reads_first)),)


def _extents(touched: Touched) -> Extents:
    """Windows are clipped to the image."""
    call, (width, _) = touched.call, widths(touched.call.function)
    pixels = {
        side: math.prod(call[f"params.{side}_{axis}"] for axis in "hw")
        for side in ("input", "output")
    }
    each = call["params.batches"] * call["params.channels"]
    rows, columns = (
        (
            call[f"params.output_{axis}"],
            call[f"params.stride_{axis}"],
            call[f"params.kernel_{axis}"],
            1,
            call[f"params.{pad}"],
        )
        for axis, pad in (("h", "pad_top"), ("w", "pad_left"))
    )
    return Extents(
        {0: whole(each * pixels["input"], width)},
        {0: whole(each * pixels["output"], width)},
        largest=window_reach([rows, columns]),
    )


def _cmsis_extents(touched: Touched, core: Core) -> Extents:
    """Windows are clipped to the image. The output has the input's batches and channels."""
    call, (width, _) = touched.call, widths(touched.call.function)
    batches, channels = call["input_dims.n"], call["input_dims.c"]
    sizes = (call["output_dims.h"], call["output_dims.w"])
    rows, columns = (
        (size, call[f"params.stride.{axis}"], call[f"filter_dims.{axis}"], 1, pad)
        for size, axis, pad in zip(
            sizes, "hw", (call["params.padding.h"], call["params.padding.w"]), strict=True
        )
    )
    image = batches * call["input_dims.h"] * call["input_dims.w"] * channels
    return Extents(
        {0: whole(image, width)},
        {0: whole(batches * math.prod(sizes) * channels, width)},
        scratch=_sums_bytes(call.function, channels, core),
        largest=window_reach([rows, columns]),
    )


def _float_extents(touched: Touched) -> Extents:
    call = touched.call
    return Extents(
        {0: image_f32(call, "input")}, {0: image_f32(call, "output")}, largest=reach_f32(call)
    )


def _our_terms(call: Call) -> Terms:
    """Pixels, the lines and the taps of their windows inside the image, by blocks of channels."""
    rows, columns = (
        along(
            call[f"params.input_{axis}"],
            call[f"params.output_{axis}"],
            call[f"params.kernel_{axis}"],
            call[f"params.stride_{axis}"],
            1,
            call[f"params.{pad}"],
            0,
        )
        for axis, pad in (("h", "pad_top"), ("w", "pad_left"))
    )
    channels = call["params.channels"]
    terms, lines, taps = _steps(call["params.batches"], rows, columns)
    pixels, rest = terms["pixel"], channels % 4
    terms |= {"lone": pixels * rest, "lone row": lines * rest, "lone tap": taps * rest}
    if call.function == _OUR_AVERAGE:
        terms |= {"lone group": pixels * bool(rest)}
        return terms | _by_channels("four", channels // 4, pixels, lines, taps)
    return (
        terms
        | _by_channels("sixteen", channels // 16, pixels, lines, taps)
        | _by_channels("four", channels % 16 // 4, pixels, lines, taps)
    )


def _cmsis_terms(call: Call, core: Core) -> Terms:
    """The same of CMSIS-NN's kernels: on Helium by vectors of 16 channels, elsewhere averages by
    channels and maxima by words.
    """
    rows, columns = (
        along(
            call[f"input_dims.{axis}"],
            call[f"output_dims.{axis}"],
            call[f"filter_dims.{axis}"],
            call[f"params.stride.{axis}"],
            1,
            call[f"params.padding.{axis}"],
            0,
        )
        for axis in "hw"
    )
    channels = call["output_dims.c"]
    terms, lines, taps = _steps(call["output_dims.n"], rows, columns)
    pixels, vectors = terms["pixel"], -(-channels // 16)
    if not core.mve:
        words, rest = divmod(channels, 4)
        return terms | {
            "line": lines,
            "tap": taps,
            "tap channel": taps * channels,
            "tap word": taps * words,
            "tap rest": taps * rest,
            "channel": pixels * channels,
        }
    if call.function.startswith(_AVERAGES):
        return terms | {"vector": pixels * vectors, "line": lines * vectors, "tap": taps * vectors}
    return terms | {
        "line": lines,
        "tap": taps,
        "first vector": pixels * vectors,
        "vector": (taps - pixels) * vectors,
        "clamped": -(-pixels * channels // 16),
    }


def _steps(batches: int, rows: Along, columns: Along) -> tuple[dict[str, float], int, int]:
    """Terms of all kernels; lines and taps of all windows, the part of them inside the image."""
    pixels = batches * rows.windows * columns.windows
    terms = {"call": 1.0, "row": batches * rows.windows, "pixel": pixels}
    return terms, batches * rows.taps * columns.windows, batches * rows.taps * columns.taps


def _by_channels(name: str, blocks: int, pixels: float, lines: int, taps: int) -> dict[str, float]:
    return {name: pixels * blocks, f"{name} row": lines * blocks, f"{name} tap": taps * blocks}
