"""Product of two int8 tensors, broadcasting. TFLite MUL.

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
    check_node,
    infer_broadcast,
    ratio_float32,
    reach,
    require_types,
    sample_binary,
    scalar_constant,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel, same_shape_kernel, unary_kernel
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

    def apply_to(self, operand: int, stored: Int64, other: int) -> Int64:
        """Operand `operand` varies, the other is one number."""
        constant = np.full_like(stored, other)
        return self.apply(*((stored, constant) if operand == 0 else (constant, stored)))

    def line(self, operand: int, other: int) -> Line:
        """The real function of one operand, the other being one number."""
        slope = (other - self.zero_points[1 - operand]) * self.multiplier * 2.0 ** (self.shift - 31)
        offset = self.zero_points[2] - slope * self.zero_points[operand]
        return Line(slope, offset, self.low, self.high)


def _arithmetic(op: kit.Operator[Mul]) -> _Arithmetic:
    one, two, y = op.x, op.input(1), op.y
    real = ratio_float32(one.q.scale, two.q.scale, divisor=y.q.scale)
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
    scalar = scalar_constant(op)
    if scalar is not None:
        operand, value = scalar
        return unary_kernel(
            op,
            lambda stored: arithmetic.apply_to(operand, stored, value),
            arithmetic.line(operand, value),
            operand,
        )
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
    zero_1, zero_2, zero_out = arithmetic.zero_points
    offsets: dict[str, kit.Argument] = {"input_1_offset": -zero_1, "input_2_offset": -zero_2}
    ending: dict[str, kit.Argument] = {
        "out_offset": zero_out,
        "out_mult": arithmetic.multiplier,
        "out_shift": arithmetic.shift,
        "out_activation_min": arithmetic.low,
        "out_activation_max": arithmetic.high,
    }
    return same_shape_kernel(op, core, "arm_elementwise_mul_s8", offsets, ending)


def read_mul(node: kit.TfliteNode) -> Mul:
    """The attributes of an operator in a file."""
    return Mul(read_activation(node))


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT8)
    return kit.ReadOp(read_mul(node), (0, 1))


def _write(op: kit.Operator[Mul]) -> kit.WrittenOp:
    fields = {"fusedActivationFunction": op.attributes.activation}
    return kit.WrittenOp("MUL", "MulOptions", fields, version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    activation = rng.choice(np.array(list(Activation), dtype=object))
    op = kit.Op("mul", "mul", ("a", "b"), ("y",), Mul(activation))
    return sample_binary(rng, op, float(2.0 ** rng.uniform(-8, 6)))


MUL = kit.Form(
    kind="mul",
    attributes=Mul,
    infer=infer_broadcast,
    reference=_reference,
    select=kit.Choice(_select, _cmsis_nn),
    sample=_sample,
    axes=elementwise_axes,
    tflite=kit.TfliteBinding(("MUL",), _read, _write),
    onnx=kit.OnnxBinding(
        ("Mul",),
        read_binary("mul", lambda activation: Mul(activation, Rounding.ONNX)),
        plain=read_plain("mul", Mul()),
    ),
    dtype=kit.DType.INT8,
    limits="int8, any broadcast, fused activation",
)
