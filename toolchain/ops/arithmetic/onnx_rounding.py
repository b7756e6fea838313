"""How ONNX Runtime requantises int32 sums to int8.

MLAS multiplies the sum by input scale * weight scale / output scale in float32 and rounds halves to
even. A network whose every operator is exact stays exact at any depth; one whose operators are
sometimes off by 1 does not stay within 1. So Thimble's convolutions compute the same in C, in
float. Where sums have few values, `single_rounding` finds integers that give the same results.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Tensor
from toolchain.kernels.runtime_c import defined
from toolchain.ops.arithmetic.fixed_point import Int32, ScaleError, quantize_multiplier, wrap_int32
from toolchain.ops.arithmetic.packing import Int8, Scaling
from toolchain.ops.arithmetic.single_rounding import (
    Int64,
    SingleRounding,
    scaled_in_double,
    scaled_in_float32,
    single_rounding,
)
from toolchain.ops.spec import Array

FLOAT_CODE = defined("include/thimble_requant.h", "THIMBLE_SHIFT_FLOAT")
"""The shift code that says that the multiplier holds the bits of a float32."""


_LARGEST_FACTOR = 1 << 16
"""Steps of the output in one step of a sum. ONNX Runtime's sums in float32 are not exactly 0 where
integers are; times such a factor that saturates. Factors of real models are far below 1."""


def onnx_factors(x: Tensor, weights: Tensor, y: Tensor) -> NDArray[np.float32]:
    """Input scale * weight scale / output scale in float32, in that order: one, or
    one per channel.

    Raises ScaleError for factors beyond `_LARGEST_FACTOR`.
    """
    scales = np.array(weights.q.scales, dtype=np.float32)
    with np.errstate(over="ignore"):
        factors: NDArray[np.float32] = np.float32(x.q.scale) * scales / np.float32(y.q.scale)
    if factors.max(initial=0) > _LARGEST_FACTOR:
        raise ScaleError(
            f"one step of its sums is {factors.max():.3g} steps of its output scale {y.q.scale:g}, "
            "so that ONNX Runtime's rounding errors decide; quantise with a representative data set"
        )
    return factors


def onnx_multiplier(x: Tensor, weights: Tensor, y: Tensor) -> tuple[int, int]:
    """The bits of the single factor, and the shift code that marks them as a float32."""
    return int(onnx_factors(x, weights, y).view(np.int32)[0]), FLOAT_CODE


def onnx_scaling(
    x: Tensor,
    weights: Tensor,
    y: Tensor,
    filters: Int8,
    bias: Int32,
    partial: bool = False,
    weight_zero_point: int = 0,
) -> Scaling:
    """Bias, factor and shift code of filters [channels, taps].

    With `partial` the kernel itself subtracts the input's zero point.
    """
    channels = len(filters)
    folded = bias.astype(np.int64)
    if not partial:
        wide = filters.astype(np.int64) - weight_zero_point
        folded = folded - x.q.zero_point * wide.sum(axis=1)
    factors = np.ascontiguousarray(np.broadcast_to(onnx_factors(x, weights, y), channels))
    return Scaling(
        filters,
        wrap_int32(folded).astype(np.int32),
        factors.view(np.int32),
        np.zeros(channels, dtype=np.int32),
        np.full(channels, FLOAT_CODE, dtype=np.int8),
    )


def requantise_onnx(
    sums: Int64, x: Tensor, weights: Tensor, y: Tensor, clamp: tuple[int, int]
) -> Array:
    """Sums (channels last), with bias and zero point included, to clamped int8. They wrap."""
    scaled = np.rint(wrap_int32(sums).astype(np.float32) * onnx_factors(x, weights, y)).astype(
        np.int64
    )
    clamped: Array = np.clip(scaled + y.q.zero_point, *clamp).astype(np.int8)
    return clamped


def onnx_fit(factor: float, largest: int, low: int, high: int) -> SingleRounding:
    """Integers for one rounding of value * factor, |value| <= largest, to low..high. The low part
    is 0.

    If no integers round as float32 does (scales that are powers of 2 give exact halves), those that
    round as double does, halves away from zero; otherwise the nearest, off by at most 1.
    """
    for rule in (scaled_in_float32, scaled_in_double):
        fit = single_rounding(factor, largest, low, high, rule, wide=False)
        if fit is not None:
            return fit
    multiplier, shift = quantize_multiplier(factor)
    return SingleRounding(multiplier, 0, max(shift, -31))
