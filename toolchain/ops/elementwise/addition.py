"""Addition and subtraction, which differ in one sign. TFLite ADD and SUB.

int8: `reference_integer_ops::Add` and `reference_ops::Sub`, with a left shift of 20; parameters as
in `PrepareGeneralSubOp`. int16: `reference_ops::Add` with left shift 15; a difference is a sum
whose second factor is negative. Where all three scales are powers of two and the file asks for it,
TFLite shifts instead (`AddLSTM`), which is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation, clamp_range, read_activation
from toolchain.ops.arithmetic.affine_form import (
    INT8_LEVELS,
    AffineForm,
    affine_form,
    two_sided_form,
)
from toolchain.ops.arithmetic.fixed_point import (
    ScaleError,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    infer_broadcast,
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
from toolchain.ops.readers.int16 import int16_sample, power_of_two
from toolchain.ops.readers.onnx_elementwise import read_binary, read_plain

_LEFT_SHIFT = 20
_LEFT_SHIFT_S16 = 15


@dataclass(frozen=True)
class Sum(kit.Attributes):
    """Attributes of add and sub."""

    activation: Activation = Activation.NONE


def _multipliers(
    scales: tuple[float, float, float], left_shift: int
) -> tuple[tuple[int, int], ...]:
    """Multiplier and shift of operand 1, of operand 2 and of the output.

    Raises ScaleError where TFLite would abort.
    """
    one, two, out = scales
    twice = 2 * max(one, two)
    reals = (one / twice, two / twice, twice / (out * 2**left_shift))
    if not 0 < reals[2] < 1 or min(reals) <= 0:
        raise ScaleError(
            f"scales {one:g}, {two:g} and {out:g} lie so far apart that TFLite stops, or shifts in "
            "a way that C leaves undefined; requantise the model with a representative data set"
        )
    return tuple(quantize_multiplier(real) for real in reals)


@dataclass(frozen=True)
class _Arithmetic:
    """Everything a sum of two int8 operands depends on."""

    scales: tuple[float, float, float]
    zero_points: tuple[int, int, int]
    sign: int
    low: int
    high: int

    def multipliers(self) -> tuple[tuple[int, int], ...]:
        return _multipliers(self.scales, _LEFT_SHIFT)

    def apply(self, a: Int64, b: Int64) -> Int64:
        first, second, out = self.multipliers()
        zero_1, zero_2, zero_out = self.zero_points
        scaled_1 = multiply_by_quantized_multiplier((a - zero_1) << _LEFT_SHIFT, *first)
        scaled_2 = multiply_by_quantized_multiplier((b - zero_2) << _LEFT_SHIFT, *second)
        total = multiply_by_quantized_multiplier(scaled_1 + self.sign * scaled_2, *out)
        clamped: Int64 = np.clip(total + zero_out, self.low, self.high)
        return clamped

    def line(self, operand: int, other: int) -> Line:
        """The real function of one operand, the other being one number."""
        one, two, out = self.scales
        slopes = (one / out, self.sign * two / out)
        slope, still = slopes[operand], slopes[1 - operand]
        offset = still * (other - self.zero_points[1 - operand])
        offset += self.zero_points[2] - slope * self.zero_points[operand]
        return Line(slope, offset, self.low, self.high)


@lru_cache(maxsize=256)
def _form(arithmetic: _Arithmetic) -> AffineForm | None:
    one, two, out = arithmetic.scales
    slopes = (one / out, arithmetic.sign * two / out)
    zero_1, zero_2, zero_out = arithmetic.zero_points
    offset = zero_out - slopes[0] * zero_1 - slopes[1] * zero_2
    target = arithmetic.apply(INT8_LEVELS[:, None], INT8_LEVELS[None, :])
    bounds = (arithmetic.low, arithmetic.high)
    return affine_form(target, slopes, offset, *bounds) or two_sided_form(
        target, slopes, (zero_1, zero_2), zero_out, *bounds
    )


def _arithmetic(op: kit.Operator[Sum], sign: int) -> _Arithmetic:
    one, two, y = op.x, op.input(1), op.y
    low, high = clamp_range(op.attributes.activation, y)
    return _Arithmetic(
        (one.q.scale, two.q.scale, y.q.scale),
        (one.q.zero_point, two.q.zero_point, y.q.zero_point),
        sign,
        low,
        high,
    )


def _reference(
    op: kit.Operator[Sum], inputs: Sequence[kit.Array], sign: int
) -> tuple[kit.Array, ...]:
    a, b = (values.astype(np.int64) for values in inputs)
    return (_arithmetic(op, sign).apply(a, b).astype(np.int8),)


def _select(op: kit.Operator[Sum], core: kit.Core, sign: int) -> kit.Kernel:
    require_types(op, kit.DType.INT8)
    arithmetic = _arithmetic(op, sign)
    try:
        multipliers = arithmetic.multipliers()
    except ValueError as error:
        raise op.refused(f"{error}") from None
    of_one = constant_kernel(op, arithmetic.apply, arithmetic.line)
    if of_one is not None:
        return of_one
    bounds = {"min": arithmetic.low, "max": arithmetic.high}
    form = _form(arithmetic)
    if form is not None:
        params = {
            "factor_1": form.factors[0],
            "factor_2": form.factors[1],
            "bias": form.bias,
            "negative_bias": form.negative_bias,
            "rounding": form.rounding,
            "shift": form.shift,
        }
        weighted = kit.Struct("thimble_weighted_sum_params", params | bounds)
        return broadcast_kernel(op, core, "thimble_weighted_sum_s8", weighted)
    params = {"left_shift": _LEFT_SHIFT, "sign_2": sign}
    for number, (multiplier, shift) in enumerate(multipliers[:2], start=1):
        params[f"offset_{number}"] = -arithmetic.zero_points[number - 1]
        params[f"multiplier_{number}"] = multiplier
        params[f"shift_{number}"] = shift
    params["output_offset"] = arithmetic.zero_points[2]
    params["output_multiplier"], params["output_shift"] = multipliers[2]
    added = kit.Struct("thimble_add_params", params | bounds)
    return broadcast_kernel(op, core, "thimble_add_s8", added)


def _cmsis_nn(op: kit.Operator[Sum], core: kit.Core) -> kit.Kernel:
    """`arm_elementwise_add_s8`. Raises NoKernelError for operands that broadcast."""
    require_types(op, kit.DType.INT8)
    arithmetic = _arithmetic(op, 1)
    try:
        multipliers, zero_points = arithmetic.multipliers(), arithmetic.zero_points
    except ValueError as error:
        raise op.refused(f"{error}") from None
    bounds = (arithmetic.low, arithmetic.high)
    scaling = _cmsis_sum(multipliers, zero_points, _LEFT_SHIFT, *bounds)
    return same_shape_kernel(op, core, "arm_elementwise_add_s8", *scaling)


def _cmsis_sum(
    multipliers: Sequence[tuple[int, int]],
    zero_points: Sequence[int],
    left_shift: int,
    low: int,
    high: int,
) -> tuple[dict[str, kit.Argument], dict[str, kit.Argument]]:
    """The arguments of CMSIS-NN's additions before and after the output. Multipliers and zero
    points are those of the first operand, the second and the output.
    """
    before: dict[str, kit.Argument] = {}
    for number, ((multiplier, shift), zero) in enumerate(
        zip(multipliers[:2], zero_points[:2], strict=True), start=1
    ):
        before[f"input_{number}_offset"] = -zero
        before[f"input_{number}_mult"] = multiplier
        before[f"input_{number}_shift"] = shift
    multiplier, shift = multipliers[2]
    return {**before, "left_shift": left_shift}, {
        "out_offset": zero_points[2],
        "out_mult": multiplier,
        "out_shift": shift,
        "out_activation_min": low,
        "out_activation_max": high,
    }


def _read(node: kit.TfliteNode) -> Sum:
    """The attributes of an operator in a file."""
    return Sum(read_activation(node))


def _multipliers_s16(op: kit.AnyOperator, sign: int) -> tuple[tuple[int, int], ...]:
    try:
        first, second, output = _multipliers(
            (op.x.q.scale, op.input(1).q.scale, op.y.q.scale), _LEFT_SHIFT_S16
        )
    except ScaleError as error:
        raise op.refused(f"{error}") from None
    return first, (sign * second[0], second[1]), output


def _reference_s16(
    op: kit.Operator[Sum], inputs: Sequence[kit.Array], sign: int
) -> tuple[kit.Array, ...]:
    first, second, out = _multipliers_s16(op, sign)
    a, b = (values.astype(np.int64) << _LEFT_SHIFT_S16 for values in inputs)
    total = multiply_by_quantized_multiplier(a, *first)
    total = total + multiply_by_quantized_multiplier(b, *second)
    low, high = clamp_range(op.attributes.activation, op.y)
    scaled = multiply_by_quantized_multiplier(total, *out)
    return (np.clip(scaled, low, high).astype(np.int16),)


def _select_s16(op: kit.Operator[Sum], core: kit.Core, sign: int) -> kit.Kernel:
    require_types(op, kit.DType.INT16)
    first, second, out = _multipliers_s16(op, sign)
    low, high = clamp_range(op.attributes.activation, op.y)
    params = {
        "left_shift": _LEFT_SHIFT_S16,
        "multiplier_1": first[0],
        "shift_1": first[1],
        "multiplier_2": second[0],
        "shift_2": second[1],
        "output_multiplier": out[0],
        "output_shift": out[1],
        "min": low,
        "max": high,
    }
    struct = kit.Struct("thimble_add_s16_params", params)
    return broadcast_kernel(op, core, "thimble_add_s16", struct)


def _cmsis_nn_s16(op: kit.Operator[Sum], core: kit.Core) -> kit.Kernel:
    """`arm_elementwise_add_s16`. Raises NoKernelError for operands that broadcast."""
    require_types(op, kit.DType.INT16)
    low, high = clamp_range(op.attributes.activation, op.y)
    scaling = _cmsis_sum(_multipliers_s16(op, 1), (0, 0, 0), _LEFT_SHIFT_S16, low, high)
    return same_shape_kernel(op, core, "arm_elementwise_add_s16", *scaling)


def _read_s16(node: kit.TfliteNode) -> Sum:
    scales = [t.q.scale for t in (*node.inputs, *node.outputs) if t is not None]
    if node.options.potScaleInt16 and None not in map(power_of_two, scales):
        raise node.unsupported(
            "int16 with power-of-two scales, which are added by shifts",
            "convert with the 16x8 scheme, which calibrates scales",
        )
    return _read(node)


def _sampler(kind: str) -> Callable[[np.random.Generator], kit.Graph]:
    def sample(rng: np.random.Generator) -> kit.Graph:
        activation = rng.choice(np.array(list(Activation), dtype=object))
        op = kit.Op(kind, kind, ("a", "b"), ("y",), Sum(activation))
        return sample_binary(rng, op, 1.0 if rng.random() < 0.2 else float(rng.uniform(0.3, 4)))

    return sample


def _spec(kind: str, sign: int) -> kit.OpSpec:
    """`add` (sign 1) or `sub` (sign -1)."""

    def reference(op: kit.Operator[Sum], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        return _reference(op, inputs, sign)

    def select(op: kit.Operator[Sum], core: kit.Core) -> kit.Kernel:
        return _select(op, core, sign)

    def reference_s16(op: kit.Operator[Sum], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        return _reference_s16(op, inputs, sign)

    def select_s16(op: kit.Operator[Sum], core: kit.Core) -> kit.Kernel:
        return _select_s16(op, core, sign)

    int8 = kit.Form(
        kind=kind,
        attributes=Sum,
        infer=infer_broadcast,
        reference=reference,
        select=kit.Choice(select, _cmsis_nn) if sign == 1 else select,
        sample=_sampler(kind),
        axes=elementwise_axes,
        tflite=binding(kind, 2, kit.DType.INT8, read=_read),
        onnx=kit.OnnxBinding(
            (BINARY[kind].onnx,), read_binary(kind, Sum), plain=read_plain(kind, Sum())
        ),
        dtype=kit.DType.INT8,
        limits="int8, any broadcast, fused activation",
    )
    of_int16 = binding(kind, 3, kit.DType.INT16, read=_read_s16)
    int16 = replace(
        int8,
        reference=reference_s16,
        select=kit.Choice(select_s16, _cmsis_nn_s16) if sign == 1 else select_s16,
        sample=int16_sample(int8.sample),
        tflite=replace(of_int16, write=lambda op: _without_shifts(of_int16.write(op))),
        onnx=None,
        dtype=kit.DType.INT16,
        limits="int16, any broadcast, fused activation; scales not all powers of two",
    )
    return kit.OpSpec((int8, int16, *plain_forms(int8, _read)))


def _without_shifts(written: kit.WrittenOp) -> kit.WrittenOp:
    return replace(written, options={**written.options, "potScaleInt16": False})


SPECS = (_spec("add", 1), _spec("sub", -1))
