"""Square of the difference of two tensors, broadcasting. TFLite SQUARED_DIFFERENCE.

Arithmetic: `SquaredDifference` in `squared_difference.cc`, left shift 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.binary_s32 import int32_form
from toolchain.ops.elementwise.common import (
    Int64,
    check_node,
    infer_broadcast,
    require_types,
    sample_binary,
    scalar_constant,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel, unary_kernel
from toolchain.ops.kernel import Kernel, Struct
from toolchain.ops.spec import (
    Array,
    OpSpec,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
    by_type,
)

LEFT_SHIFT = 7


@dataclass(frozen=True)
class _Arithmetic:
    """Everything the result depends on besides the operands."""

    zero_points: tuple[int, int, int]
    multipliers: tuple[tuple[int, int], ...]

    def apply(self, a: Int64, b: Int64) -> Int64:
        first, second, out = self.multipliers
        zero_1, zero_2, zero_out = self.zero_points
        difference = multiply_by_quantized_multiplier(
            (a - zero_1) << LEFT_SHIFT, *first
        ) - multiply_by_quantized_multiplier((b - zero_2) << LEFT_SHIFT, *second)
        scaled = multiply_by_quantized_multiplier(difference * difference, *out)
        clamped: Int64 = np.clip(scaled + zero_out, -128, 127)
        return clamped


def _arithmetic(op: Op, graph: Graph) -> _Arithmetic:
    """Raises UnsupportedError for scales with which TFLite aborts."""
    one, two, out = (t.q for t in (graph.input(op, 0), graph.input(op, 1), graph.output(op)))
    twice = 2 * max(one.scale, two.scale)
    reals = (
        one.scale / twice,
        two.scale / twice,
        twice * twice / (out.scale * 4**LEFT_SHIFT),
    )
    if not all(0 < real < 1 for real in reals):
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: scales {one.scale:g}, {two.scale:g} and {out.scale:g} lie too "
            "far apart; requantise the model with a representative data set"
        )
    zero_points = (one.zero_point, two.zero_point, out.zero_point)
    return _Arithmetic(zero_points, tuple(quantize_multiplier(real) for real in reals))


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    a, b = (values.astype(np.int64) for values in inputs)
    return (_arithmetic(op, graph).apply(a, b).astype(np.int8),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT8)
    arithmetic = _arithmetic(op, graph)
    scalar = scalar_constant(op, graph)
    if scalar is not None:  # the order of the operands does not matter, up to their scales
        operand, value = scalar

        def of_one(stored: Int64) -> Int64:
            other = np.full_like(stored, value)
            return arithmetic.apply(*((stored, other) if operand == 0 else (other, stored)))

        return unary_kernel(op, graph, of_one, None, operand)
    params = {"left_shift": LEFT_SHIFT, "output_offset": arithmetic.zero_points[2]}
    for number in (1, 2):
        params[f"offset_{number}"] = -arithmetic.zero_points[number - 1]
        multiplier, shift = arithmetic.multipliers[number - 1]
        params |= {f"multiplier_{number}": multiplier, f"shift_{number}": shift}
    params["output_multiplier"], params["output_shift"] = arithmetic.multipliers[2]
    struct = Struct("thimble_squared_difference_params", params)
    return broadcast_kernel(op, graph, core, "thimble_squared_difference_s8", struct)


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT8)
    return ReadOp(Attributes(), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return WrittenOp("SQUARED_DIFFERENCE", "SquaredDifferenceOptions", version=2)


def _sample(rng: np.random.Generator) -> Graph:
    op = Op("squared_difference", "squared_difference", ("a", "b"), ("y",))
    return sample_binary(rng, op, float(2.0 ** rng.uniform(-2, 8)))


_INT8 = OpSpec(
    kind="squared_difference",
    attributes=Attributes,
    infer=infer_broadcast,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=TfliteBinding(("SQUARED_DIFFERENCE",), _read, _write),
    limits="int8, any broadcast",
)

SPEC = by_type(
    {DType.INT8: _INT8, DType.FLOAT32: float_form(_INT8), DType.INT32: int32_form(_INT8)}
)
