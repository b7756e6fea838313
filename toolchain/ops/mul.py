"""Product of two int8 tensors, broadcasting. TFLite MUL.

Arithmetic: `reference_integer_ops::Mul`; the factor s1 * s2 / s_out is taken in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops._activation import Activation, clamp_range, read_activation
from toolchain.ops._elementwise import (
    broadcast,
    check_left_shift,
    check_node,
    infer_broadcast,
    overlaps_same_shape,
    ratio_float32,
    require_types,
    sample_binary,
)
from toolchain.ops._fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from toolchain.ops.spec import (
    Array,
    Lowering,
    OpSpec,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_MAX_RIGHT_SHIFT = 20
"""A product of two operands has 17 bits: by any longer shift it rounds to 0 too."""


@dataclass(frozen=True)
class Mul(Attributes):
    activation: Activation = Activation.NONE


def _clamp(op: Op, graph: Graph) -> tuple[int, int]:
    assert isinstance(op.attributes, Mul)
    return clamp_range(op.attributes.activation, graph.output(op))


def _requantisation(op: Op, graph: Graph) -> tuple[int, int]:
    one, two, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    return quantize_multiplier(ratio_float32(one.q.scale, two.q.scale, divisor=y.q.scale))


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    one, two, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    a = inputs[0].astype(np.int64) - one.q.zero_point
    b = inputs[1].astype(np.int64) - two.q.zero_point
    scaled = multiply_by_quantized_multiplier(a * b, *_requantisation(op, graph))
    return (np.clip(scaled + y.q.zero_point, *_clamp(op, graph)).astype(np.int8),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    require_types(op, graph, DType.INT8)
    one, two, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    multiplier, shift = _requantisation(op, graph)
    check_left_shift(op, shift)
    left, right = max(shift, 0), min(max(-shift, 0), _MAX_RIGHT_SHIFT)
    half = 1 << (right - 1) if right else 0
    low, high = _clamp(op, graph)
    # One bit more on the left makes the doubling high multiply a plain high word.
    params = {
        "factor_1": 1 << (left + 1),
        "offset_1": -one.q.zero_point << (left + 1),
        "offset_2": -two.q.zero_point,
        "multiplier": multiplier,
        "round_away": -1 if right else 0,
        "bias": (y.q.zero_point << right) + half,
        "shift": right,
        "min": low,
        "max": high,
    }
    return Lowering(
        functions=("thimble_mul_s8",),
        fields={
            "function": "thimble_mul_s8",
            "params_type": "thimble_mul_params",
            "params": params,
            "shape": broadcast(one.shape, two.shape),
        },
    )


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT8)
    return ReadOp(Mul(read_activation(node)), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, Mul)
    fields = {"fusedActivationFunction": op.attributes.activation}
    return WrittenOp("MUL", "MulOptions", fields, version=2)


def _sample(rng: np.random.Generator) -> Graph:
    activation = rng.choice(np.array(list(Activation), dtype=object))
    op = Op("mul", "mul", ("a", "b"), ("y",), Mul(activation))
    return sample_binary(rng, op, float(2.0 ** rng.uniform(-8, 6)))


SPEC = OpSpec(
    kind="mul",
    attributes=Mul,
    infer=infer_broadcast,
    reference=_reference,
    lower=_lower,
    sample=_sample,
    overlaps=overlaps_same_shape,
    tflite=TfliteBinding(("MUL",), _read, _write),
    limits="int8, any broadcast, fused activation",
)
