"""`thimble_partial_conv_lanes_s8`: int32 sums of a convolution without groups, in vectors."""

from __future__ import annotations

import math

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import Int32
from toolchain.ops.convolution.kernels.lanes import column_bytes, four_turns, window_terms
from toolchain.ops.convolution.kernels.shape import input_shape, output_shape, reach, taps
from toolchain.ops.convolution.kernels.sums import SUMS, extents_of_sums, sums_kernel
from toolchain.ops.convolution.packing import VECTOR_BYTES, Int8, by_blocks
from toolchain.ops.convolution.structs import conv_shape
from toolchain.ops.weighted import INPUT
from toolchain.ops.window import Window

FUNCTION = "thimble_partial_conv_lanes_s8"


def kernel(op: kit.AnyOperator, window: Window) -> kit.Kernel:
    """Of any window."""
    depth = op.input(INPUT).shape[3]
    return sums_kernel(
        op,
        FUNCTION,
        {"shape": conv_shape(op, window, depth)},
        pack=_packed,
        scratch_bytes=column_bytes(window.kernel[0] * window.kernel[1] * depth),
        extents=_extents,
        terms=lambda: _terms(op, window),
    )


def _packed(filters: Int8, bias: Int32) -> Int32:
    """All biases, then the filters [channels, taps]."""
    biases = by_blocks(bias, 4).reshape(-1)
    return np.concatenate([biases, four_turns(filters).reshape(-1)]).astype(np.int32)


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    (_, *image), (_, *sums) = input_shape(call), output_shape(call)  # one image
    return extents_of_sums(
        touched,
        math.prod(image),
        math.prod(sums),
        kit.round_up(call["shape.output_c"], 4) * (4 + kit.round_up(taps(call), VECTOR_BYTES)),
        column_bytes(taps(call)),
        reach(call),
    )


def _terms(op: kit.AnyOperator, window: Window) -> kit.Terms:
    terms = window_terms(op, window)
    return terms | {
        "block added": terms["block"] * (op.inputs[SUMS] is not None),
        "lone channel": terms["pair of pixels"] * (op.y.shape[3] % 4),
    }
