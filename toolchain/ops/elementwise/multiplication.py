"""Products of two int8 or int16 tensors, broadcasting. TFLite MUL.

Arithmetic: `reference_integer_ops::Mul`; the factor s1 * s2 / s_out is taken in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation, clamp_range, read_activation
from toolchain.ops.arithmetic.affine_form import INT8_LEVELS, fitting_bias
from toolchain.ops.arithmetic.fixed_point import (
    INT32_MAX,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    wrap_int32,
)
from toolchain.ops.arithmetic.merged_rounding import merged_rounding
from toolchain.ops.arithmetic.onnx_rounding import onnx_fit
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.arithmetic.single_rounding import SingleRounding
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    infer_broadcast,
    ratio_float32,
    reach,
    require_types,
    sample_binary,
)
from toolchain.ops.elementwise.functions import BINARY
from toolchain.ops.elementwise.kernels import (
    broadcast_kernel,
    constant_kernel,
    same_shape_kernel,
)
from toolchain.ops.elementwise.kinds import binding, plain_forms
from toolchain.ops.readers.int16 import int16_sample
from toolchain.ops.readers.onnx_elementwise import read_binary, read_plain


@dataclass(frozen=True)
class Mul(kit.Attributes):
    """Attributes of mul."""

    activation: Activation = Activation.NONE
    rounding: Rounding = Rounding.TFLITE


@dataclass(frozen=True)
class _Arithmetic:
    """Everything a product of two int8 operands depends on. `once`: it is rounded only once."""

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
            scaled = multiply_by_quantized_multiplier(product, self.multiplier, self.shift)
        clamped: Int64 = np.clip(scaled + self.zero_points[2], self.low, self.high)
        return clamped

    def line(self, operand: int, other: int) -> Line:
        """The real function of one operand, the other being one number."""
        slope = (other - self.zero_points[1 - operand]) * self.multiplier * 2.0 ** (self.shift - 31)
        offset = self.zero_points[2] - slope * self.zero_points[operand]
        return Line(slope, offset, self.low, self.high)


def _factor(op: kit.AnyOperator) -> float:
    """That of products, in float32."""
    return ratio_float32(op.x.q.scale, op.input(1).q.scale, divisor=op.y.q.scale)


def _arithmetic(op: kit.Operator[Mul]) -> _Arithmetic:
    one, two, y = op.x, op.input(1), op.y
    real = _factor(op)
    zero_points = (one.q.zero_point, two.q.zero_point, y.q.zero_point)
    limits = clamp_range(op.attributes.activation, y)
    arithmetic = _Arithmetic(
        zero_points, *quantize_multiplier(real, reach(one) * reach(two)), *limits
    )
    if op.attributes.rounding is Rounding.ONNX:
        low, high = (bound - y.q.zero_point for bound in limits)
        fit = onnx_fit(real, arithmetic.largest, low, high)
        return replace(arithmetic, multiplier=fit.multiplier, shift=fit.shift, once=True)
    return arithmetic


def _reference(op: kit.Operator[Mul], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    a, b = (values.astype(np.int64) for values in inputs)
    return (_arithmetic(op).apply(a, b).astype(np.int8),)


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
    base = (wrap_int32(products << growth) * arithmetic.multiplier) >> 32
    target = arithmetic.apply(INT8_LEVELS[:, None], INT8_LEVELS[None, :])
    single = fitting_bias(base, target, shift, arithmetic.low, arithmetic.high, bias)
    if arithmetic.once:
        bias, negative_bias = (zero_out << shift) + (1 << (shift - 1)), 0
    elif single is not None and abs(single) <= 2**30:
        bias, negative_bias = single, 0
    return {
        "factor_1": wrap_int32(1 << growth),
        "offset_1": wrap_int32(-zero_1 << growth),
        "offset_2": -zero_2,
        "multiplier": arithmetic.multiplier,
        "bias": bias,
        "negative_bias": negative_bias,
        "shift": shift,
        "min": arithmetic.low,
        "max": arithmetic.high,
    }


def _select(op: kit.Operator[Mul], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT8)
    arithmetic = _arithmetic(op)
    of_one = constant_kernel(op, arithmetic.apply, arithmetic.line)
    if of_one is not None:
        return of_one
    struct = kit.Struct("thimble_mul_params", _params(arithmetic))
    return broadcast_kernel(op, core, "thimble_mul_s8", struct)


def _cmsis_nn(op: kit.Operator[Mul], core: kit.Core) -> kit.Kernel:
    """`arm_elementwise_mul_s8`. Raises NoKernelError for operands that broadcast, ONNX's rounding,
    and products that wrap once they are shifted left.
    """
    require_types(op, kit.DType.INT8)
    arithmetic = _arithmetic(op)
    if arithmetic.once:
        raise kit.NoKernelError("CMSIS-NN rounds as TFLite does, not once as ONNX Runtime")
    if arithmetic.largest << max(arithmetic.shift, 0) > INT32_MAX:
        raise kit.NoKernelError("its products, shifted left, may wrap, which it leaves undefined")
    scaling = _cmsis_product(
        arithmetic.zero_points,
        (arithmetic.multiplier, arithmetic.shift),
        (arithmetic.low, arithmetic.high),
    )
    return same_shape_kernel(op, core, "arm_elementwise_mul_s8", *scaling)


def _cmsis_product(
    zero_points: tuple[int, int, int], scaling: tuple[int, int], limits: tuple[int, int]
) -> tuple[dict[str, kit.Argument], dict[str, kit.Argument]]:
    """The arguments of CMSIS-NN's products before and after the output."""
    zero_1, zero_2, zero_out = zero_points
    return {"input_1_offset": -zero_1, "input_2_offset": -zero_2}, {
        "out_offset": zero_out,
        "out_mult": scaling[0],
        "out_shift": scaling[1],
        "out_activation_min": limits[0],
        "out_activation_max": limits[1],
    }


def _scaling_s16(op: kit.AnyOperator) -> tuple[int, int]:
    return quantize_multiplier(_factor(op), reach(op.x) * reach(op.input(1)))


def _reference_s16(op: kit.Operator[Mul], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    a, b = (values.astype(np.int64) for values in inputs)
    scaled = multiply_by_quantized_multiplier(a * b, *_scaling_s16(op))
    low, high = clamp_range(op.attributes.activation, op.y)
    return (np.clip(scaled, low, high).astype(np.int16),)


def _select_s16(op: kit.Operator[Mul], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT16)
    multiplier, shift = _scaling_s16(op)
    low, high = clamp_range(op.attributes.activation, op.y)
    struct = kit.Struct(
        "thimble_mul_s16_params",
        {"multiplier": multiplier, "shift": shift, "min": low, "max": high},
    )
    return broadcast_kernel(op, core, "thimble_mul_s16", struct)


def _cmsis_nn_s16(op: kit.Operator[Mul], core: kit.Core) -> kit.Kernel:
    """`arm_elementwise_mul_s16`. Raises NoKernelError for operands that broadcast."""
    require_types(op, kit.DType.INT16)
    multiplier, shift = _scaling_s16(op)
    if shift > 0:
        raise kit.NoKernelError("its products, shifted left, may wrap, which it leaves undefined")
    limits = clamp_range(op.attributes.activation, op.y)
    scaling = _cmsis_product((0, 0, 0), (multiplier, shift), limits)
    return same_shape_kernel(op, core, "arm_elementwise_mul_s16", *scaling)


def _read(node: kit.TfliteNode) -> Mul:
    return Mul(read_activation(node))


def _sample(rng: np.random.Generator) -> kit.Graph:
    activation = rng.choice(np.array(list(Activation), dtype=object))
    op = kit.Op("mul", "mul", ("a", "b"), ("y",), Mul(activation))
    return sample_binary(rng, op, float(2.0 ** rng.uniform(-8, 6)))


_INT8 = kit.Form(
    kind="mul",
    attributes=Mul,
    infer=infer_broadcast,
    reference=_reference,
    select=kit.Choice(_select, _cmsis_nn),
    sample=_sample,
    axes=elementwise_axes,
    tflite=binding("mul", 2, kit.DType.INT8, read=_read),
    onnx=kit.OnnxBinding(
        (BINARY["mul"].onnx,),
        read_binary("mul", lambda activation: Mul(activation, Rounding.ONNX)),
        plain=read_plain("mul", Mul()),
    ),
    dtype=kit.DType.INT8,
    limits="int8, any broadcast, fused activation",
)
_INT16 = replace(
    _INT8,
    reference=_reference_s16,
    select=kit.Choice(_select_s16, _cmsis_nn_s16),
    sample=int16_sample(_sample, finer=2**14),
    tflite=binding("mul", 4, kit.DType.INT16, read=_read),
    onnx=None,
    dtype=kit.DType.INT16,
    limits="int16, any broadcast, fused activation",
)
SPECS = (kit.OpSpec((_INT8, _INT16, *plain_forms(_INT8, _read))),)
