"""The kernels of max and average pools: their calls, what these touch, and how their loops turn."""

from __future__ import annotations

import math

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import clamp_range
from toolchain.ops.convolution.window_f32 import image_f32, reach_f32, window_f32
from toolchain.ops.extents import Extents, whole, widths, window_reach
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Scratch,
    Struct,
    Terms,
    Touched,
)
from toolchain.ops.pooling.common import pool_attributes, pool_lead_bytes, pool_window
from toolchain.ops.terms import along

_LIFTED = "thimble_average_pool_lifted_s8"
_PLAIN = "thimble_average_pool_s8"
_AVERAGES = "arm_avgpool"


def pool_kernel(
    op: Op, graph: Graph, core: Core, function: str, *, reads_first: bool = True
) -> Kernel:
    """A call of `function`, whose arguments are those of CMSIS-NN's pools.

    CMSIS-NN's averages have scratch as its `get_buffer_size` functions say. `reads_first`: see
    `pool_lead_bytes`.
    """
    attributes, x, y = pool_attributes(op), graph.input(op, 0), graph.output(op)
    low, high = clamp_range(attributes.activation, y)
    scratch_bytes = _sums_bytes(function, y.shape[3], core)
    context: dict[str, Argument] = {
        "ctx": Struct("cmsis_nn_context", {"buf": Scratch(), "size": scratch_bytes})
    }
    lifted: dict[str, Argument] = {"lift": attributes.lift}
    first = lifted if function == _LIFTED else context
    stride = {"w": attributes.stride_width, "h": attributes.stride_height}
    padding = {"w": attributes.padding[2], "h": attributes.padding[0]}
    params = {
        "stride": Struct("cmsis_nn_tile", stride),
        "padding": Struct("cmsis_nn_tile", padding),
        "activation": Struct("cmsis_nn_activation", {"min": low, "max": high}),
    }
    window = (1, attributes.filter_height, attributes.filter_width, 1)
    call = Call(
        function,
        {
            **first,
            "params": Struct("cmsis_nn_pool_params", params),
            "input_dims": _dims(x.shape),
            "src": Input(0),
            "filter_dims": _dims(window),
            "output_dims": _dims(y.shape),
            "dst": Output(0),
        },
        status=True,
    )
    return Kernel(
        (call,),
        lambda touched: _pool_extents(touched, core),
        scratch_bytes=scratch_bytes,
        find_overlaps=lambda: _overlaps(op, graph, reads_first),
        find_terms=None if widths(function)[0] > 1 else lambda: _terms(call),
        label=_PLAIN if function == _LIFTED else "",  # the same loops, and the same coefficients
    )


def float_pool_kernel(op: Op, graph: Graph, function: str) -> Kernel:
    """A call of `function`, a float32 pool."""
    x, y, activation = graph.input(op, 0), graph.output(op), pool_attributes(op).activation
    window = window_f32(x.shape, y.shape, pool_window(op), activation)
    call = Call(function, {"window": window, "input": Input(0), "output": Output(0)})
    return Kernel(
        (call,), _float_extents, find_overlaps=lambda: _overlaps(op, graph, reads_first=True)
    )


def _dims(shape: tuple[int, ...]) -> Struct:
    return Struct("cmsis_nn_dims", dict(zip("nhwc", shape, strict=True)))


def _sums_bytes(function: str, channels: int, core: Core) -> int:
    """CMSIS-NN's averages sum in int32, one for each channel, on cores with DSP, not Helium."""
    sums = function.startswith(_AVERAGES) and core.dsp and not core.mve
    return 4 * channels if sums else 0


def _overlaps(op: Op, graph: Graph, reads_first: bool) -> tuple[SafeOverlap, ...]:
    return (SafeOverlap(0, 0, pool_lead_bytes(op, graph, reads_first=reads_first)),)


def _pool_extents(touched: Touched, core: Core) -> Extents:
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


def _terms(call: Call) -> Terms:
    """Pixels, the lines and the taps of their windows inside the image, by blocks of channels."""
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
    batches, channels = call["output_dims.n"], call["output_dims.c"]
    pixels = batches * rows.windows * columns.windows
    lines = batches * rows.taps * columns.windows
    taps = batches * rows.taps * columns.taps
    vectors, sixteens, rest = -(-channels // 16), channels // 16, channels % 4
    terms = {"call": 1.0, "row": batches * rows.windows, "pixel": pixels}
    lone = {"lone": pixels * rest, "lone row": lines * rest, "lone tap": taps * rest}
    match call.function:
        case "arm_max_pool_s8":
            return terms | {
                "line": lines,
                "tap": taps,
                "first vector": pixels * vectors,
                "vector": (taps - pixels) * vectors,
                "clamped": -(-pixels * channels // 16),
            }
        case "arm_avgpool_s8":
            return terms | {
                "vector": pixels * vectors,
                "line": lines * vectors,
                "tap": taps * vectors,
            }
        case "thimble_max_pool_s8":
            terms |= {
                "sixteen": pixels * sixteens,
                "sixteen row": lines * sixteens,
                "sixteen tap": taps * sixteens,
            }
            return terms | _fours(pixels, lines, taps, channels % 16 // 4) | lone
    terms["lone group"] = pixels * bool(rest)
    return terms | _fours(pixels, lines, taps, channels // 4) | lone


def _fours(pixels: int, lines: int, taps: int, count: int) -> dict[str, float]:
    """Of `count` blocks of four channels."""
    return {"four": pixels * count, "four row": lines * count, "four tap": taps * count}
