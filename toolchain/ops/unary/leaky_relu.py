"""x where x >= 0, alpha * x elsewhere. TFLite LEAKY_RELU, int8.

Arithmetic: `QuantizeLeakyRelu`; parameters as in `LeakyReluPrepare`, in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops import extents
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    check_left_shift,
    check_node,
    infer_unary,
    lower_unary,
    overlaps_same_shape,
    ratio_float32,
    reference_unary,
    require_types,
    sample_unary,
)
from toolchain.ops.spec import (
    Array,
    Lowering,
    OpSpec,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


@dataclass(frozen=True)
class LeakyRelu(Attributes):
    """`alpha`: an exact float32 value; it may be negative or above 1."""

    alpha: float = 0.01


def multipliers(op: Op, graph: Graph) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Of the positive side, of the negative side's magnitude, and alpha's sign."""
    assert isinstance(op.attributes, LeakyRelu)
    x, y = graph.input(op, 0).q.scale, graph.output(op).q.scale
    slope = ratio_float32(x, op.attributes.alpha, divisor=y)
    identity = quantize_multiplier(ratio_float32(x, divisor=y))
    return identity, quantize_multiplier(abs(slope)), -1 if slope < 0 else 1


def _apply(op: Op, graph: Graph, stored: Int64) -> Int64:
    x, y = graph.input(op, 0), graph.output(op)
    identity, alpha, sign = multipliers(op, graph)
    centred = stored - x.q.zero_point
    positive = multiply_by_quantized_multiplier(centred, *identity)
    negative = sign * multiply_by_quantized_multiplier(centred, *alpha)
    scaled = np.where(centred >= 0, positive, negative)
    clamped: Int64 = np.clip(scaled + y.q.zero_point, -128, 127)
    return clamped


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return reference_unary(op, graph, inputs, lambda stored: _apply(op, graph, stored))


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    require_types(op, graph, DType.INT8)
    identity, alpha, _ = multipliers(op, graph)
    check_left_shift(op, max(identity[1], alpha[1]))
    return lower_unary(op, graph, lambda stored: _apply(op, graph, stored))


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT8)
    return ReadOp(LeakyRelu(float(node.options.alpha)), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, LeakyRelu)
    return WrittenOp("LEAKY_RELU", "LeakyReluOptions", {"alpha": op.attributes.alpha}, version=2)


def _sample(rng: np.random.Generator) -> Graph:
    alphas = (0.01, 0.1, 0.2, 0.3, 1.0, 0.0, float(rng.uniform(0, 2)), float(rng.uniform(-1, 0)))
    alpha = float(np.float32(alphas[int(rng.integers(len(alphas)))]))
    op = Op("leaky_relu", "leaky_relu", ("x",), ("y",), LeakyRelu(alpha))
    return sample_unary(rng, op)


SPEC = OpSpec(
    kind="leaky_relu",
    attributes=LeakyRelu,
    infer=infer_unary,
    reference=_reference,
    lower=_lower,
    extents=extents.unary,
    sample=_sample,
    overlaps=overlaps_same_shape,
    axes=elementwise_axes,
    tflite=TfliteBinding(("LEAKY_RELU",), _read, _write),
    limits="int8, any alpha",
)
