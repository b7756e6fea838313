"""`thimble_partial_conv_s8`: int32 sums of a convolution without groups, two windows and two
channels at a time.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.kernels import partial_sums, shapes, windows
from toolchain.ops.convolution.kernels.thimble_convolve_s8 import column_bytes, column_scratch

FUNCTION = "thimble_partial_conv_s8"


def kernel(op: kit.AnyOperator, window: kit.Window) -> kit.Kernel:
    """The kernel of any window."""
    depth = op.input(kit.INPUT).shape[3]
    return partial_sums.sums_kernel(
        op,
        FUNCTION,
        {"shape": parts.conv_shape(op, window, depth)},
        pack=partial_sums.pack_pairs,
        scratch_bytes=column_bytes(window.kernel, depth, 2),
        extents=_extents,
        terms=lambda: _terms(op, window),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    wide = kit.round_up(shapes.taps(call), 4)
    parameters = partial_sums.pair_bytes(call["shape.output_c"], wide)
    return partial_sums.extents_of_windows(touched, parameters, column_scratch(call, wide, 2))


def _terms(op: kit.AnyOperator, window: kit.Window) -> kit.Terms:
    batches, out_h, out_w, _ = op.y.shape
    pixels, depth = out_h * out_w, op.input(kit.INPUT).shape[3]
    words = -(-window.kernel[0] * window.kernel[1] * depth // 4)
    gathered: windows.Counts = {"call": 1.0} | windows.gathered_terms(op, window, depth, batches)
    gathered["pixel"] = batches * pixels
    return partial_sums.pair_terms(op, gathered, batches * -(-pixels // 2), words)
