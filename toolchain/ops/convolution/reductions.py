"""How a convolution can be summed in parts: the axes it reduces, and the requantisation at the end.

Source: MOTES, section 4.3, reduced axes.
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.onnx_rounding import FLOAT_CODE, onnx_factors
from toolchain.ops.convolution.common import channel_requantisation, weight_zero_point
from toolchain.ops.convolution.partial_conv2d import PartialConv2D
from toolchain.ops.reduction.requantise_sums import RequantiseSums


def convolution_ending(
    op: kit.AnyOperator, activation: kit.Activation, rounding: kit.Rounding
) -> RequantiseSums:
    """The operator that turns the int32 sums of a convolution into its output."""
    x, weights, y = op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    channels = y.shape[-1]
    if rounding is kit.Rounding.ONNX:
        factors = np.ascontiguousarray(np.broadcast_to(onnx_factors(x, weights, y), channels))
        multipliers, codes = factors.view(np.int32).tolist(), [FLOAT_CODE] * channels
    else:
        filters = kit.constant_of(weights).reshape(channels, -1).astype(np.int8)
        sums = packing.sums_of(kit.bias_of(op, channels), filters, x.q.zero_point, partial=True)
        requantisation = channel_requantisation(x, weights, y, channels)
        kit.check_sums(sums.lowest, sums.highest, *requantisation, y.q.zero_point)
        multipliers, shifts = (array.tolist() for array in requantisation)
        triples = zip(multipliers, shifts, sums.largest.tolist(), strict=True)
        codes = [packing.shift_code(*triple) for triple in triples]
    return RequantiseSums(
        multipliers=tuple(multipliers),
        codes=tuple(codes),
        offset=y.q.zero_point,
        activation=activation,
    )


def convolution_reductions(
    op: kit.AnyOperator, window: kit.Window, activation: kit.Activation, rounding: kit.Rounding
) -> tuple[kit.Reduction, ...]:
    """The reduced axes: input channels; rows (or columns), if the kernel covers the image's whole
    height (or width).
    """
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    if weights.shape[3] != x.shape[3] or weight_zero_point(weights) != 0:
        return ()
    if not all(tensor.is_constant for tensor in op.present[1:]):
        return ()
    attributes = PartialConv2D(window.stride, window.dilation, window.padding)
    pad = window.padding
    rows = x.shape[1] == window.kernel[0] and pad.top == pad.bottom == 0
    columns = x.shape[2] == window.kernel[1] and pad.left == pad.right == 0
    covered = {
        1: rows and window.dilation[0] == 1,
        2: columns and window.dilation[1] == 1,
        3: True,
    }
    return tuple(
        kit.Reduction(
            x.shape[axis],
            (kit.Reach(axis), kit.Reach(axis), None),
            "partial_conv2d",
            attributes,
            lambda: convolution_ending(op, activation, rounding),
        )
        for axis, whole in covered.items()
        if whole
    )


def run_of_rows(shape: tuple[int, ...], depth: int) -> tuple[int, kit.Reach] | None:
    """How to split `shape`, read as rows of `depth` elements, into more than one part.

    Returns the first axis that divides the rows, with what one of its indices reads of a matrix
    [units, depth]; None if there is none: an index would hold elements of two rows, or rows have
    one element.
    """
    inner = 1
    for axis in reversed(range(len(shape))):
        if inner * shape[axis] >= depth:
            if inner * shape[axis] != depth or shape[axis] == 1:
                return None
            return axis, kit.Reach(1, inner, inner)
        inner *= shape[axis]
    return None
