"""Addition and subtraction, which differ in one sign. TFLite ADD and SUB.

int8: `reference_integer_ops::Add` and `reference_ops::Sub`, with a left shift of 20; parameters as
in `PrepareGeneralSubOp`. int16: `reference_ops::Add` with left shift 15; a difference is a sum
whose second factor is negative. Where all three scales are powers of two and the file asks for it,
TFLite shifts instead (`AddLSTM`), which is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.affine_form import (
    INT8_LEVELS,
    AffineForm,
    affine_form,
    two_sided_form,
)
from toolchain.ops.arithmetic.fixed_point import ScaleError
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    sample_binary,
    scaled_operands,
    scales_of,
    zero_points_of,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel, same_shape_kernel
from toolchain.ops.elementwise.rows import FUSED, Arithmetic, Fused, Stored, of_two
from toolchain.ops.readers.int16 import power_of_two

_LEFT_SHIFT = 20
_LEFT_SHIFT_S16 = 15


class Sum(Fused):
    """Attributes of add and sub."""


@dataclass(frozen=True)
class _Arithmetic(Arithmetic):
    """Zero points of int16 are 0. `sign`: of the second operand."""

    scales: tuple[float, float, float]
    zero_points: tuple[int, int, int]
    sign: int
    low: int
    high: int
    wide: bool = False

    @property
    def left_shift(self) -> int:
        return _LEFT_SHIFT_S16 if self.wide else _LEFT_SHIFT

    def multipliers(self) -> tuple[tuple[int, int], ...]:
        """Factors of operand 1, operand 2 (in int16 with the sign) and the output.

        Raises ScaleError where TFLite would abort.
        """
        one, two, out = self.scales
        twice = 2 * max(one, two)
        reals = (one / twice, two / twice, twice / (out * 2**self.left_shift))
        if not 0 < reals[2] < 1 or min(reals) <= 0:
            raise ScaleError(
                f"scales {one:g}, {two:g} and {out:g} lie so far apart that TFLite stops, or "
                "shifts in a way that C leaves undefined; requantise the model with a "
                "representative data set"
            )
        first, second, output = (kit.quantize_multiplier(real) for real in reals)
        return first, (self.sign * second[0] if self.wide else second[0], second[1]), output

    def apply(self, a: Int64, b: Int64) -> Int64:
        zero_1, zero_2, zero_out = self.zero_points
        first, second, out = self.multipliers()
        one = kit.multiply_by_quantized_multiplier((a - zero_1) << self.left_shift, *first)
        two = kit.multiply_by_quantized_multiplier((b - zero_2) << self.left_shift, *second)
        total = one + (1 if self.wide else self.sign) * two
        scaled = kit.multiply_by_quantized_multiplier(total, *out)
        clamped: Int64 = np.clip(scaled + zero_out, self.low, self.high)
        return clamped

    def line(self, operand: int, other: int) -> Line:
        one, two, out = self.scales
        slopes = (one / out, self.sign * two / out)
        slope, still = slopes[operand], slopes[1 - operand]
        offset = still * (other - self.zero_points[1 - operand])
        offset += self.zero_points[2] - slope * self.zero_points[operand]
        return Line(slope, offset, self.low, self.high)

    def kernel(self, op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        bounds = {"min": self.low, "max": self.high}
        form = None if self.wide else _form(self)
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
        function, name = "thimble_add_s8", "thimble_add_params"
        if self.wide:
            function, name = "thimble_add_s16", "thimble_add_s16_params"
        return broadcast_kernel(op, core, function, kit.Struct(name, self._steps() | bounds))

    def _steps(self) -> dict[str, int]:
        """The parameters of TFLite's own steps, but for the bounds."""
        multipliers, params = self.multipliers(), {"left_shift": self.left_shift}
        if self.wide:
            params |= scaled_operands(multipliers)
        else:
            params |= {"sign_2": self.sign, **scaled_operands(multipliers, self.zero_points)}
            params["output_offset"] = self.zero_points[2]
        params["output_multiplier"], params["output_shift"] = multipliers[2]
        return params


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
    limits = kit.clamp_range(op.attributes.activation, op.y)
    wide = op.y.dtype is kit.DType.INT16
    return _Arithmetic(scales_of(op), zero_points_of(op), sign, *limits, wide)


def _cmsis_nn(op: kit.Operator[Sum], core: kit.Core) -> kit.Kernel:
    """`arm_elementwise_add_s8` or `_s16`. Raises NoKernelError for operands that broadcast."""
    own = _arithmetic(op, sign=1)
    multipliers, scaling = own.multipliers(), dict[str, kit.Argument]()
    for number, (multiplier, shift) in enumerate(multipliers[:2], start=1):
        scaling[f"input_{number}_offset"] = -own.zero_points[number - 1]
        scaling[f"input_{number}_mult"] = multiplier
        scaling[f"input_{number}_shift"] = shift
    scaling["left_shift"] = own.left_shift
    results = (own.zero_points[2], *multipliers[2], own.low, own.high)
    function = f"arm_elementwise_add_{'s16' if own.wide else 's8'}"
    return same_shape_kernel(op, core, function, scaling, results)


def _check_shifts(node: kit.TfliteNode) -> None:
    scales = [t.q.scale for t in (*node.inputs, *node.outputs) if t is not None]
    if node.options.potScaleInt16 and None not in map(power_of_two, scales):
        raise node.unsupported(
            "int16 with power-of-two scales, which are added by shifts",
            "convert with the 16x8 scheme, which calibrates scales",
        )


def sample(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    """An int8 operator, whose results often have the larger operand's scale."""
    scale = 1.0 if rng.random() < 0.2 else float(rng.uniform(0.3, 4))
    return sample_binary(rng, kind, attributes, scale)


def _rules(sign: int) -> tuple[Stored, Stored]:
    """Rules for int8 and int16: sums (sign 1) or differences (sign -1)."""
    int8 = of_two(partial(_arithmetic, sign=sign), cmsis_nn=_cmsis_nn if sign == 1 else None)
    int16 = replace(
        int8,
        version=3,
        check=_check_shifts,
        written={"potScaleInt16": False},
        limits=f"{FUSED}; scales not all powers of two",
    )
    return int8, int16


ADD, ADD_S16 = _rules(1)
SUB, SUB_S16 = _rules(-1)
