"""How ONNX Runtime's convolutions turn int32 sums into int8, in integer arithmetic.

MLAS multiplies the sum by input * weight / output scale in float32 and rounds once, halves to even.
`single_rounding` finds a multiplier and shift that do the same for every sum the weights allow. A
network that is exact operator by operator stays exact however deep it is; one that differs by 1
here and there does not stay within 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Tensor
from toolchain.ops._conv_packing import Int8, Scaling
from toolchain.ops._fixed_point import INT32_MAX, Int32, quantize_multiplier
from toolchain.ops._single_rounding import (
    Int64,
    SingleRounding,
    scaled_in_double,
    scaled_in_float32,
    single_rounding,
)
from toolchain.ops.spec import Array


def onnx_scaling(
    x: Tensor, weights: Tensor, y: Tensor, filters: Int8, bias: Int32, clamp: tuple[int, int]
) -> Scaling:
    """Bias, multiplier and shift for filters given as [channels, taps]; `clamp`: stored values.

    Where no integers round as float32 does (exact halves, which scales that are powers of 2 bring),
    those that round as double does, halves away from zero; else the nearest, 1 off at most.
    """
    wide = filters.astype(np.int64)
    folded = bias.astype(np.int64) - x.q.zero_point * wide.sum(axis=1)
    largest = np.minimum(np.abs(folded) + 128 * np.abs(wide).sum(axis=1), INT32_MAX)
    scales = np.broadcast_to(np.array(weights.q.scales, dtype=np.float32), len(filters))
    factors = np.float32(x.q.scale) * scales / np.float32(y.q.scale)
    low, high = (bound - y.q.zero_point for bound in clamp)
    fits = [
        onnx_fit(float(factor), int(bound), low, high)
        for factor, bound in zip(factors, largest, strict=True)
    ]
    return Scaling(
        filters,
        ((folded + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32),
        np.array([fit.multiplier for fit in fits], dtype=np.int32),
        np.zeros(len(fits), dtype=np.int32),
        np.array([_code(fit.shift) for fit in fits], dtype=np.int8),
    )


def onnx_fit(factor: float, largest: int, low: int, high: int) -> SingleRounding:
    """One rounding of value * factor, |value| <= largest, to low..high; its low part is 0."""
    for rule in (scaled_in_float32, scaled_in_double):
        found = single_rounding(factor, largest, low, high, rule, wide=False)
        if found is not None:
            return found
    multiplier, shift = quantize_multiplier(factor)
    return SingleRounding(multiplier, 0, max(shift, -31))


def _code(shift: int) -> int:
    """The shift code of one rounding, as `thimble_requantize_s8` reads it."""
    return shift - 1 if shift <= 0 else shift - 129


def requantise_onnx(sums: Int64, scales: Scaling, y: Tensor, clamp: tuple[int, int]) -> Array:
    """Sums (channels last, bias and zero point included) to clamped int8."""
    code = scales.code.astype(np.int64)
    places = 31 - np.where(code >= -32, code + 1, code + 129)
    halves = np.int64(1) << (places - 1)
    scaled: NDArray[np.int64] = (sums * scales.multiplier.astype(np.int64) + halves) >> places
    return np.clip(scaled + y.q.zero_point, *clamp).astype(np.int8)
