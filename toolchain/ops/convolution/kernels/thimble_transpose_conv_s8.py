"""`thimble_transpose_conv_s8`: a transposed convolution, output pixel by output pixel, from the
inputs that add to it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolchain.ops import kit, walks
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import overlaps, parts
from toolchain.ops.convolution.common import filters_of, window_of
from toolchain.ops.convolution.kernels import shapes

FUNCTION = "thimble_transpose_conv_s8"


def kernel(op: kit.Operator[Any]) -> kit.Kernel:
    """The kernel of any transpose_conv2d. Raises ScaleError as `scaled` does."""
    window, (_, height, width, depth) = window_of(op), op.input(kit.WEIGHTS).shape
    scales = parts.scaled(op, filters_of(op), partial=True)
    shape = parts.conv_shape(op, window, depth)
    meeting = -(-height // window.stride[0]) * -(-width // window.stride[1])
    return kit.Kernel(
        (parts.own_call(op, FUNCTION, shape),),
        _extents,
        constants=(parts.parameters(op, FUNCTION, lambda: _packed(scales(), height * width)),),
        scratch_bytes=meeting * (2 * kit.round_up(depth, 4) + 4),
        find_overlaps=lambda: _overlaps(op, window),
    )


def _packed(scales: packing.Scaling, taps: int) -> kit.Int32:
    """The depth of each tap is filled up to whole words."""
    channels = len(scales.bias)
    filters = packing.as_words(packing.filled_up(scales.filters.reshape(channels, taps, -1), 2, 4))
    heads = np.stack([scales.bias, scales.multiplier, scales.code.astype(np.int32)], axis=1)
    return packing.joined([heads, filters.reshape(channels, -1)])


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    taps = call["shape.kernel_h"] * call["shape.kernel_w"]
    depth = kit.round_up(call["shape.depth"], 4)
    parameters = 4 * call["shape.output_c"] * (3 + taps * depth // 4)
    return extents_of_outputs(touched, parameters, meeting_taps(call) * (2 * depth + 4))


def meeting_taps(call: kit.Call) -> int:
    """Taps of a filter that at most add to an output."""
    return math.prod(
        -(-call[f"shape.kernel_{axis}"] // call[f"shape.stride_{axis}"]) for axis in "hw"
    )


def extents_of_outputs(
    touched: kit.Touched, parameter_bytes: int, scratch_bytes: int
) -> kit.Extents:
    """The bytes that a kernel of transposed convolutions touches."""
    call = touched.call
    batches, height, width, _ = shapes.input_shape(call)
    read = shapes.image((batches, height, width, call["shape.depth"]))
    written = shapes.image(shapes.output_shape(call))
    parameters = {"parameters": parameter_bytes}
    return kit.Extents(
        {0: read}, {0: written}, parameters, scratch_bytes, kit.reach_in(call, "shape")
    )


def first_inputs(op: kit.AnyOperator, window: kit.Window) -> walks.Int64:
    """The first input pixel that adds to each output pixel."""
    x, y = op.input(kit.INPUT).shape, op.y.shape
    pads = (window.padding.top, window.padding.left)
    rows, columns = (
        walks.first_transposed_taps(x[1 + a], y[1 + a], window.kernel[a], window.stride[a], pads[a])
        for a in (0, 1)
    )
    return walks.first_pixels((x[1], x[2]), rows, columns, x[0])


def _overlaps(op: kit.AnyOperator, window: kit.Window) -> tuple[kit.SafeOverlap, ...]:
    """The inputs of an output pixel are gathered before it is written."""
    x, y = op.input(kit.INPUT).shape, op.y.shape
    firsts = first_inputs(op, window)
    ends = np.arange(1, len(firsts) + 1)
    return (kit.SafeOverlap(kit.INPUT, 0, overlaps.gathered_lead(firsts, ends, x[3], y[3])),)
