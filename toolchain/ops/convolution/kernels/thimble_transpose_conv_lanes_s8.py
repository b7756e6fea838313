"""`thimble_transpose_conv_lanes_s8`: a transposed convolution in Helium's vectors: an ordinary one
for each row and column modulo the strides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolchain.ops import kit, walks
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import filters_of, window_of
from toolchain.ops.convolution.kernels import lanes
from toolchain.ops.convolution.kernels.thimble_transpose_conv_s8 import (
    extents_of_outputs,
    first_inputs,
    meeting_taps,
)

FUNCTION = "thimble_transpose_conv_lanes_s8"


def kernel(op: kit.Operator[Any]) -> kit.Kernel:
    """The kernel of any transpose_conv2d. Raises ScaleError as `scaled` does."""
    window, filters = window_of(op), filters_of(op).reshape(op.input(kit.WEIGHTS).shape)
    scales = [
        parts.scaled(op, part.reshape(len(filters), -1)) for part in _parts(filters, window.stride)
    ]

    def packed() -> kit.Int32:
        scalings = [scale() for scale in scales]
        return np.concatenate(
            [lanes.pack_fours(one.filters, parts.own_lane_endings(op, one)) for one in scalings]
        )

    shape = parts.conv_shape(op, window, op.input(kit.INPUT).shape[3])
    taps = math.prod(-(-k // s) for k, s in zip(window.kernel, window.stride, strict=True))
    return kit.Kernel(
        (parts.own_call(op, FUNCTION, shape),),
        _extents,
        constants=(parts.parameters(op, FUNCTION, packed),),
        scratch_bytes=lanes.column_bytes(taps * filters.shape[3]),
        find_overlaps=lambda: _overlaps(op, window),
        find_terms=lambda: _terms(op, window),
    )


def _parts(filters: packing.Int8, stride: tuple[int, int]) -> list[packing.Int8]:
    """Filters of the ordinary convolutions that a transposed one with filters [channels, rows,
    columns, depth] consists of: one for each row and column of outputs modulo the strides. They are
    every `stride`th tap, the last first; one tap of zeros where there is none.
    """
    channels, _, _, depth = filters.shape
    parts = []
    for down in range(stride[0]):
        for across in range(stride[1]):
            part = filters[:, down :: stride[0], across :: stride[1]][:, ::-1, ::-1]
            rows, columns = max(part.shape[1], 1), max(part.shape[2], 1)
            if not part.size:
                part = np.zeros((channels, rows, columns, depth), np.int8)
            parts.append(part)
    return parts


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    depth, met = call["shape.depth"], [_met(call, axis) for axis in "hw"]
    vectors = sum(
        kit.round_up(rows * columns * depth, packing.VECTOR_BYTES)
        for rows in met[0]
        for columns in met[1]
    )
    scaled = lanes.LANE_SCALING * len(met[0]) * len(met[1])
    parameters = kit.round_up(call["shape.output_c"], 4) * (vectors + scaled)
    return extents_of_outputs(touched, parameters, lanes.column_bytes(meeting_taps(call) * depth))


def _met(call: kit.Call, axis: str) -> list[int]:
    """Kernel rows or columns that outputs see, for each place modulo the stride; at least one."""
    kernel, stride = call[f"shape.kernel_{axis}"], call[f"shape.stride_{axis}"]
    return [max(-(-(kernel - first) // stride), 1) for first in range(stride)]


def _overlaps(op: kit.AnyOperator, window: kit.Window) -> tuple[kit.SafeOverlap, ...]:
    """Outputs of a row are written before others of it are gathered."""
    x, y = op.input(kit.INPUT).shape, op.y.shape
    firsts = first_inputs(op, window)
    starts = np.arange(0, len(firsts), y[2])
    lead = walks.lead_bytes((starts + y[2]) * y[3], walks.read_after(firsts * x[3], starts))
    return (kit.SafeOverlap(kit.INPUT, 0, lead),)


def _terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    """Pairs of outputs that agree modulo the strides."""
    batches, out_h, out_w, channels = op.y.shape
    depth, stride, pads = op.x.shape[3], window.stride, window.padding
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
            counts["edge vector"] += (
                lines * pixels * rows * -(-columns * depth // packing.VECTOR_BYTES)
            )
            counts["block"] += pairs * fours
            counts["uneven block"] += pairs * fours * bool(taps % packing.VECTOR_BYTES)
            counts["block vector"] += pairs * fours * (taps // packing.VECTOR_BYTES)
    return counts
