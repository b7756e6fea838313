"""What the kernels of int8 convolutions share: scales of their sums, comments, strided images."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.fixed_point import Int32, check_sums
from toolchain.ops.arithmetic.onnx_rounding import onnx_factors, onnx_scaling
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.common import (
    Convolution,
    channel_requantisation,
    weight_zero_point,
)
from toolchain.ops.convolution.endings import lane_endings
from toolchain.ops.convolution.packing import Ending, Int8, Scaling, scaling, sums_of
from toolchain.ops.convolution.structs import requant
from toolchain.ops.weighted import (
    INPUT,
    WEIGHTS,
    bias_of,
)

Sizes = tuple[int, ...]
PLAIN = (1, 1)
"""A stride or dilation of one, a window of one pixel."""


def quicker(
    helium: Callable[[kit.Operator[Any], kit.Core], kit.Kernel],
    own: Callable[[kit.Operator[Any], kit.Core], kit.Kernel],
    op: kit.AnyOperator,
    core: kit.Core,
) -> kit.Kernel:
    """`helium` on cores that have it, where that takes the operator; else `own`."""
    if core.mve:
        with suppress(kit.NoKernelError):
            return helium(op, core)
    return own(op, core)


def strided_image(op: kit.AnyOperator) -> frozenset[str]:
    """The operands that may be strided views: those of one image, if the kernel is one of
    Thimble's.
    """
    if op.input(INPUT).shape[0] != 1:
        return frozenset()
    return frozenset((op.op.inputs[INPUT], op.op.outputs[0]))


def packed_comment(filters: str, shape: Sizes, function: str) -> str:
    """A comment for the generated C: what the packed parameters of a kernel hold."""
    sizes = "x".join(map(str, shape))
    return f"biases, {filters} [{sizes}] and requantisation, packed for {function}"


def channel_scaling(
    op: kit.AnyOperator,
    activation: Activation,
    rounding: Rounding,
    filters: Int8,
    *,
    partial: bool = False,
) -> Callable[[], Scaling]:
    """How the sums of filters [channels, taps] are scaled. The scaling is computed when the
    returned function is called.

    With `partial` the kernel itself subtracts the input's zero point and skips taps outside the
    image. Raises ScaleError at once as `check_sums` does, or if its float factor is absurd.
    """
    x, weights, y = op.input(INPUT), op.input(WEIGHTS), op.y
    bias = bias_of(op.op, op.graph, len(filters))
    return tensor_scaling((x, weights, y), bias, activation, rounding, filters, partial=partial)


def tensor_scaling(
    tensors: tuple[kit.Tensor, kit.Tensor, kit.Tensor],
    bias: Int32,
    activation: Activation,
    rounding: Rounding,
    filters: Int8,
    *,
    partial: bool = False,
) -> Callable[[], Scaling]:
    """`channel_scaling` by the quantisation of input, weights and output."""
    x, weights, y = tensors
    zero_point = weight_zero_point(weights)
    if rounding is Rounding.ONNX:
        onnx_factors(x, weights, y)
        return lambda: onnx_scaling(x, weights, y, filters, bias, partial, zero_point)
    multiplier, shift = channel_requantisation(x, weights, y, len(filters))
    sums = sums_of(bias, filters, x.q.zero_point, partial, zero_point)
    check_sums(sums.lowest, sums.highest, multiplier, shift, y.q.zero_point)
    return lambda: scaling(
        bias,
        filters,
        x.q.zero_point,
        multiplier,
        shift,
        clamp_range(activation, y),
        y.q.zero_point,
        partial,
        zero_point,
    )


def scaled(op: kit.Operator[Convolution], filters: Int8) -> Callable[[], Scaling]:
    """`channel_scaling` by the operator's activation and rounding. `filters`: [channels, taps]."""
    attributes = op.attributes
    return channel_scaling(op, attributes.activation, attributes.rounding, filters)


def own_requant(op: kit.Operator[Convolution]) -> kit.Struct:
    """The `thimble_requant` of the operator's output and activation."""
    return requant(op.y, op.attributes.activation)


def own_lane_endings(op: kit.Operator[Convolution], scales: Scaling) -> Ending:
    """`lane_endings` by the operator's output and activation."""
    y, zero_point = op.y, weight_zero_point(op.input(WEIGHTS))
    activation = clamp_range(op.attributes.activation, y)
    return lane_endings(scales, y.q.zero_point, activation, zero_point)
