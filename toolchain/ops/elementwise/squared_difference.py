"""Square of the difference of two tensors, broadcasting. TFLite SQUARED_DIFFERENCE.

Arithmetic: `SquaredDifference` in `squared_difference.cc`, left shift 7; int16 as tflite-micro has
it, without a shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    infer_broadcast,
    require_types,
    sample_binary,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel, constant_kernel
from toolchain.ops.elementwise.kinds import binding, plain_forms
from toolchain.ops.readers.int16 import as_int16, int16_form

LEFT_SHIFT = 7


@dataclass(frozen=True)
class _Arithmetic:
    """Everything the result depends on besides the operands."""

    zero_points: tuple[int, int, int]
    multipliers: tuple[tuple[int, int], ...]
    left_shift: int
    dtype: kit.DType

    def apply(self, a: Int64, b: Int64) -> Int64:
        first, second, out = self.multipliers
        zero_1, zero_2, zero_out = self.zero_points
        difference = multiply_by_quantized_multiplier(
            (a - zero_1) << self.left_shift, *first
        ) - multiply_by_quantized_multiplier((b - zero_2) << self.left_shift, *second)
        scaled = multiply_by_quantized_multiplier(difference * difference, *out)
        info = np.iinfo(self.dtype.value)
        clamped: Int64 = np.clip(scaled + zero_out, info.min, info.max)
        return clamped


def _arithmetic(op: kit.AnyOperator) -> _Arithmetic:
    """Raises UnsupportedError for scales with which TFLite aborts."""
    one, two, out = (t.q for t in (op.x, op.input(1), op.y))
    twice, wide = 2 * max(one.scale, two.scale), op.y.dtype is kit.DType.INT16
    left_shift = 0 if wide else LEFT_SHIFT
    reals = (
        one.scale / twice,
        two.scale / twice,
        twice * twice / (out.scale * 4**left_shift),
    )
    if not all(0 < real < 1 for real in reals):
        raise op.refused(
            f"scales {one.scale:g}, {two.scale:g} and {out.scale:g} lie too "
            "far apart; requantise the model with a representative data set"
        )
    zero_points = (one.zero_point, two.zero_point, out.zero_point)
    multipliers = tuple(quantize_multiplier(real) for real in reals)
    return _Arithmetic(zero_points, multipliers, left_shift, op.y.dtype)


def _reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    a, b = (values.astype(np.int64) for values in inputs)
    return (_arithmetic(op).apply(a, b).astype(op.y.dtype.numpy),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    dtype = op.y.dtype
    require_types(op, dtype)
    arithmetic = _arithmetic(op)
    # The order of the operands does not matter, up to their scales.
    of_one = constant_kernel(op, arithmetic.apply) if dtype is kit.DType.INT8 else None
    if of_one is not None:
        return of_one
    wide = dtype is kit.DType.INT16
    params = {} if wide else {"left_shift": LEFT_SHIFT, "output_offset": arithmetic.zero_points[2]}
    for number in (1, 2):
        if not wide:
            params[f"offset_{number}"] = -arithmetic.zero_points[number - 1]
        multiplier, shift = arithmetic.multipliers[number - 1]
        params |= {f"multiplier_{number}": multiplier, f"shift_{number}": shift}
    params["output_multiplier"], params["output_shift"] = arithmetic.multipliers[2]
    name = "thimble_squared_difference_s16_params" if wide else "thimble_squared_difference_params"
    struct = kit.Struct(name, params)
    function = f"thimble_squared_difference_s{8 * dtype.size_bytes}"
    return broadcast_kernel(op, core, function, struct)


def _sample(rng: np.random.Generator) -> kit.Graph:
    op = kit.Op("squared_difference", "squared_difference", ("a", "b"), ("y",))
    return sample_binary(rng, op, float(2.0 ** rng.uniform(-2, 8)))


_INT8 = kit.Form(
    kind="squared_difference",
    attributes=kit.Attributes,
    infer=infer_broadcast,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=binding("squared_difference", 2, kit.DType.INT8),
    dtype=kit.DType.INT8,
    limits="int8, any broadcast",
)


def _sample_s16(rng: np.random.Generator) -> kit.Graph:
    """Squares of int16 are 2^16 times as large as those of int8, in the operands' steps."""
    graph = as_int16(_sample(rng))
    y = graph.tensors["y"]
    scale = float(np.float32(y.q.scale * 2.0 ** rng.uniform(8, 20)))
    coarse = replace(y, quantisation=kit.Quantisation((scale,), (0,)))
    return replace(graph, tensors={**graph.tensors, "y": coarse})


_INT16 = replace(
    int16_form(_INT8, "int16, any broadcast"),
    sample=_sample_s16,
    tflite=binding("squared_difference", 2, kit.DType.INT16),
)

SPEC = kit.OpSpec((_INT8, _INT16, *plain_forms(_INT8)))
