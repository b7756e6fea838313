"""Products of two int8 or int16 tensors, broadcasting. TFLite MUL.

Arithmetic: `reference_integer_ops::Mul`; the factor s1 * s2 / s_out is taken in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.affine_form import INT8_LEVELS, fitting_bias
from toolchain.ops.arithmetic.merged_rounding import merged_rounding
from toolchain.ops.arithmetic.onnx_rounding import onnx_fit
from toolchain.ops.arithmetic.single_rounding import SingleRounding
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    ratio_float32,
    reach,
    sample_binary,
    scales_of,
    zero_points_of,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel, same_shape_kernel
from toolchain.ops.elementwise.rows import Arithmetic, Rounded, of_two
from toolchain.ops.readers.int16 import as_int16


class Mul(Rounded):
    """Attributes of mul."""


@dataclass(frozen=True)
class _Arithmetic(Arithmetic):
    """Zero points of int16 are 0. `once`: a product is rounded only once."""

    zero_points: tuple[int, int, int]
    multiplier: int
    shift: int
    low: int
    high: int
    once: bool = False

    @property
    def largest(self) -> int:
        zero_1, zero_2, _ = self.zero_points
        return max(127 - zero_1, 128 + zero_1) * max(127 - zero_2, 128 + zero_2)

    def apply(self, a: Int64, b: Int64) -> Int64:
        product = (a - self.zero_points[0]) * (b - self.zero_points[1])
        if self.once:
            scaled = SingleRounding(self.multiplier, 0, self.shift).apply(product)
        else:
            scaled = kit.multiply_by_quantized_multiplier(product, self.multiplier, self.shift)
        clamped: Int64 = np.clip(scaled + self.zero_points[2], self.low, self.high)
        return clamped

    def line(self, operand: int, other: int) -> Line:
        slope = (other - self.zero_points[1 - operand]) * self.multiplier * 2.0 ** (self.shift - 31)
        offset = self.zero_points[2] - slope * self.zero_points[operand]
        return Line(slope, offset, self.low, self.high)

    def kernel(self, op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        if op.y.dtype is kit.DType.INT8:
            struct = kit.Struct("thimble_mul_params", _params(self))
            return broadcast_kernel(op, core, "thimble_mul_s8", struct)
        scaling = {"multiplier": self.multiplier, "shift": self.shift}
        params = {**scaling, "min": self.low, "max": self.high}
        struct = kit.Struct("thimble_mul_s16_params", params)
        return broadcast_kernel(op, core, "thimble_mul_s16", struct)


def _arithmetic(op: kit.Operator[Mul]) -> _Arithmetic:
    one, two, out = scales_of(op)
    real, zero_points = ratio_float32(one, two, divisor=out), zero_points_of(op)
    scaling = kit.quantize_multiplier(real, reach(op.x) * reach(op.input(1)))
    limits = kit.clamp_range(op.attributes.activation, op.y)
    arithmetic = _Arithmetic(zero_points, *scaling, *limits)
    if op.attributes.rounding is kit.Rounding.TFLITE or op.y.dtype is kit.DType.INT16:
        return arithmetic
    low, high = (bound - zero_points[2] for bound in limits)
    fit = onnx_fit(real, arithmetic.largest, low, high)
    return replace(arithmetic, multiplier=fit.multiplier, shift=fit.shift, once=True)


@lru_cache(maxsize=256)
def _params(arithmetic: _Arithmetic) -> Mapping[str, int]:
    """The kernel's constants.

    Where one bias serves all 65,536 pairs (proved by trying them, usual where products have one
    sign) the negative one is spared.
    """
    zero_1, zero_2, zero_out = arithmetic.zero_points
    rounding = merged_rounding(arithmetic.shift, zero_out, arithmetic.largest)
    growth, shift = rounding.growth, rounding.shift
    bias, negative_bias = rounding.bias, rounding.negative_bias
    products = np.multiply.outer(INT8_LEVELS - zero_1, INT8_LEVELS - zero_2)
    base = (kit.wrap_int32(products << growth) * arithmetic.multiplier) >> 32
    target = arithmetic.apply(INT8_LEVELS[:, None], INT8_LEVELS[None, :])
    single = fitting_bias(base, target, shift, arithmetic.low, arithmetic.high, bias)
    if arithmetic.once:
        bias, negative_bias = (zero_out << shift) + (1 << (shift - 1)), 0
    elif single is not None and abs(single) <= 2**30:
        bias, negative_bias = single, 0
    return {
        "factor_1": kit.wrap_int32(1 << growth),
        "offset_1": kit.wrap_int32(-zero_1 << growth),
        "offset_2": -zero_2,
        "multiplier": arithmetic.multiplier,
        "bias": bias,
        "negative_bias": negative_bias,
        "shift": shift,
        "min": arithmetic.low,
        "max": arithmetic.high,
    }


def _cmsis_nn(op: kit.Operator[Mul], core: kit.Core) -> kit.Kernel:
    """`arm_elementwise_mul_s8` or `_s16`. Raises NoKernelError for operands that broadcast, ONNX's
    rounding, and products that wrap once they are shifted left.
    """
    own, wide = _arithmetic(op), op.y.dtype is kit.DType.INT16
    if own.once:
        raise kit.NoKernelError("CMSIS-NN rounds as TFLite does, not once as ONNX Runtime")
    if own.shift > 0 if wide else own.largest << max(own.shift, 0) > kit.INT32_MAX:
        raise kit.NoKernelError("its products, shifted left, may wrap, which it leaves undefined")
    zero_1, zero_2, zero_out = own.zero_points
    offsets = {"input_1_offset": -zero_1, "input_2_offset": -zero_2}
    ending = (zero_out, own.multiplier, own.shift, own.low, own.high)
    function = f"arm_elementwise_mul_{'s16' if wide else 's8'}"
    return same_shape_kernel(op, core, function, offsets, ending)


def sample(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    """An int8 operator."""
    return sample_binary(rng, kind, attributes, float(2.0 ** rng.uniform(-8, 6)))


def _sample_s16(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    return as_int16(sample(rng, kind, attributes), finer=2**14)


INT8 = of_two(_arithmetic, cmsis_nn=_cmsis_nn)
INT16 = replace(INT8, version=4, sample=_sample_s16)
