"""`thimble_partial_conv_lanes_s8`: int32 sums of a convolution without groups, in vectors."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.kernels import lanes, partial_sums, shapes

FUNCTION = "thimble_partial_conv_lanes_s8"
CODE_BYTES = {FUNCTION: kit.CodeBytes.LANES}


def kernel(op: kit.AnyOperator, window: kit.Window) -> kit.Kernel:
    """The kernel of any window."""
    depth = op.input(kit.INPUT).shape[3]
    return partial_sums.sums_kernel(
        op,
        FUNCTION,
        {"shape": parts.conv_shape(op, window, depth)},
        pack=_packed,
        scratch_bytes=lanes.column_bytes(window.kernel[0] * window.kernel[1] * depth),
        extents=_extents,
        terms=lambda: _terms(op, window),
    )


def _packed(filters: packing.Int8, bias: kit.Int32) -> kit.Int32:
    """All biases, then the filters [channels, taps]."""
    biases = packing.by_blocks(bias, 4).reshape(-1)
    return np.concatenate([biases, lanes.four_turns(filters).reshape(-1)]).astype(np.int32)


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    taps = shapes.taps(call)
    filters = 4 + kit.round_up(taps, packing.VECTOR_BYTES)
    parameters = kit.round_up(call["shape.output_c"], 4) * filters
    return partial_sums.extents_of_windows(touched, parameters, lanes.column_bytes(taps))


def _terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    terms = lanes.window_terms(op, window)
    return terms | {
        "block added": terms["block"] * (op.inputs[partial_sums.SUMS] is not None),
        "lone channel": terms["pair of pixels"] * (op.y.shape[3] % 4),
    }
