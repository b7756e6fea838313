"""`thimble_partial_conv_1x1_s8`: int32 sums of windows of one pixel, whose channels are whole
words; two pixels and two channels at a time.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.kernels import partial_sums
from toolchain.ops.convolution.kernels.thimble_convolve_s8 import column_bytes

FUNCTION = "thimble_partial_conv_1x1_s8"


def kernel(op: kit.AnyOperator, window: kit.Window) -> kit.Kernel:
    """The kernel of a window of one pixel, without strides and padding."""
    depth, y = op.input(kit.INPUT).shape[3], op.y.shape
    return partial_sums.sums_kernel(
        op,
        FUNCTION,
        {"pixels": y[0] * y[1] * y[2], "depth": depth, "channels": y[3]},
        pack=partial_sums.pack_pairs,
        scratch_bytes=column_bytes(window.kernel, depth, 2),
        extents=_extents,
        terms=lambda: _terms(op),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    pixels, depth, channels = call["pixels"], call["depth"], call["channels"]
    parameters = partial_sums.pair_bytes(channels, kit.round_up(depth, 4))
    return partial_sums.extents_of_sums(
        touched, pixels * depth, pixels * channels, parameters, 4 * depth, 0
    )


def _terms(op: kit.AnyOperator) -> kit.Terms:
    batches, out_h, out_w, _ = op.y.shape
    pairs, words = -(-batches * out_h * out_w // 2), -(-op.input(kit.INPUT).shape[3] // 4)
    return partial_sums.pair_terms(
        op, {"call": 1.0, "column word": 2 * pairs * words}, pairs, words
    )
