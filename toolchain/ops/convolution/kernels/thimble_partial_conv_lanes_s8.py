"""`thimble_partial_conv_lanes_s8`: int32 sums of a convolution without groups, in vectors."""

from __future__ import annotations

import math

import numpy as np

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.convolution.kernels.lanes import column_bytes, four_turns, window_terms
from toolchain.ops.convolution.kernels.shape import input_shape, output_shape, reach, taps
from toolchain.ops.convolution.kernels.sums import SUMS, extents_of_sums, sums_kernel
from toolchain.ops.convolution.packing import VECTOR_BYTES, Int8, by_blocks
from toolchain.ops.convolution.structs import conv_shape
from toolchain.ops.extents import Extents, round_up
from toolchain.ops.kernel import Kernel, Terms, Touched
from toolchain.ops.weighted import INPUT
from toolchain.ops.window import Window

FUNCTION = "thimble_partial_conv_lanes_s8"


def kernel(op: Op, graph: Graph, window: Window) -> Kernel:
    """Of any window."""
    depth = graph.input(op, INPUT).shape[3]
    return sums_kernel(
        op,
        graph,
        FUNCTION,
        {"shape": conv_shape(op, graph, window, depth)},
        pack=_packed,
        scratch_bytes=column_bytes(window.kernel[0] * window.kernel[1] * depth),
        extents=_extents,
        terms=lambda: _terms(op, graph, window),
    )


def _packed(filters: Int8, bias: Int32) -> Int32:
    """All biases, then the filters [channels, taps]."""
    biases = by_blocks(bias, 4).reshape(-1)
    return np.concatenate([biases, four_turns(filters).reshape(-1)]).astype(np.int32)


def _extents(touched: Touched) -> Extents:
    call = touched.call
    (_, *image), (_, *sums) = input_shape(call), output_shape(call)  # one image
    return extents_of_sums(
        touched,
        math.prod(image),
        math.prod(sums),
        round_up(call["shape.output_c"], 4) * (4 + round_up(taps(call), VECTOR_BYTES)),
        column_bytes(taps(call)),
        reach(call),
    )


def _terms(op: Op, graph: Graph, window: Window) -> Terms:
    terms = window_terms(op, graph, window)
    return terms | {
        "block added": terms["block"] * bool(op.inputs[SUMS]),
        "lone channel": terms["pair of pixels"] * (graph.output(op).shape[3] % 4),
    }
