"""`thimble_partial_conv_s8`: int32 sums of a convolution without groups, two windows and two
channels at a time.
"""

from __future__ import annotations

import math

from toolchain.ops import kit
from toolchain.ops.convolution.kernels.shape import input_shape, output_shape, reach, taps
from toolchain.ops.convolution.kernels.sums import (
    extents_of_sums,
    pack_pairs,
    pair_bytes,
    pair_terms,
    sums_kernel,
)
from toolchain.ops.convolution.kernels.thimble_convolve_s8 import column_bytes, column_scratch
from toolchain.ops.convolution.kernels.windows import Counts, gathered_terms
from toolchain.ops.convolution.structs import conv_shape
from toolchain.ops.weighted import INPUT
from toolchain.ops.window import Window

FUNCTION = "thimble_partial_conv_s8"


def kernel(op: kit.AnyOperator, window: Window) -> kit.Kernel:
    """Of any window."""
    depth = op.input(INPUT).shape[3]
    return sums_kernel(
        op,
        FUNCTION,
        {"shape": conv_shape(op, window, depth)},
        pack=pack_pairs,
        scratch_bytes=column_bytes(window.kernel, depth, 2),
        extents=_extents,
        terms=lambda: _terms(op, window),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    (_, *image), (_, *sums) = input_shape(call), output_shape(call)  # one image
    wide = kit.round_up(taps(call), 4)
    return extents_of_sums(
        touched,
        math.prod(image),
        math.prod(sums),
        pair_bytes(call["shape.output_c"], wide),
        column_scratch(call, wide, 2),
        reach(call),
    )


def _terms(op: kit.AnyOperator, window: Window) -> kit.Terms:
    batches, out_h, out_w, _ = op.y.shape
    pixels, depth = out_h * out_w, op.input(INPUT).shape[3]
    words = -(-window.kernel[0] * window.kernel[1] * depth // 4)
    gathered: Counts = {"call": 1.0} | gathered_terms(op, window, depth, batches)
    gathered["pixel"] = batches * pixels
    return pair_terms(op, gathered, batches * -(-pixels // 2), words)
