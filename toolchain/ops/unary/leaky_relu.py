"""x where x >= 0, alpha * x elsewhere. TFLite LEAKY_RELU, int8 and int16.

Arithmetic: `QuantizeLeakyRelu`; parameters as in `LeakyReluPrepare`, in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    check_node,
    infer_unary,
    ratio_float32,
    reference_unary,
    require_types,
    sample_unary,
)
from toolchain.ops.elementwise.kernels import sized_kernel, unary_kernel
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import Kernel, Struct
from toolchain.ops.readers.int16 import int16_sample
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp
from toolchain.ops.unary.unary_f32 import FloatFunction, float_form


@dataclass(frozen=True)
class LeakyRelu(Attributes):
    """`alpha` is an exact float32. It may be negative or above 1."""

    alpha: float = 0.01


def _multipliers(op: Op, graph: Graph) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Of the positive side, of the negative side's magnitude, and alpha's sign."""
    assert isinstance(op.attributes, LeakyRelu)
    x, y = graph.input(op, 0).q.scale, graph.output(op).q.scale
    slope = ratio_float32(x, op.attributes.alpha, divisor=y)
    identity = quantize_multiplier(ratio_float32(x, divisor=y))
    return identity, quantize_multiplier(abs(slope)), -1 if slope < 0 else 1


def _apply(op: Op, graph: Graph, stored: Int64) -> Int64:
    x, y = graph.input(op, 0), graph.output(op)
    identity, alpha, sign = _multipliers(op, graph)
    centred = stored - x.q.zero_point
    positive = multiply_by_quantized_multiplier(centred, *identity)
    negative = sign * multiply_by_quantized_multiplier(centred, *alpha)
    scaled = np.where(centred >= 0, positive, negative)
    clamped: Int64 = np.clip(scaled + y.q.zero_point, -128, 127)
    return clamped


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return reference_unary(op, graph, inputs, lambda stored: _apply(op, graph, stored))


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT8)
    return unary_kernel(op, graph, lambda stored: _apply(op, graph, stored))


def _read_attributes(node: TfliteNode) -> LeakyRelu:
    return LeakyRelu(float(node.options.alpha))


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT8)
    return ReadOp(_read_attributes(node), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, LeakyRelu)
    return WrittenOp("LEAKY_RELU", "LeakyReluOptions", {"alpha": op.attributes.alpha}, version=2)


def _sample(rng: np.random.Generator) -> Graph:
    alphas = (0.01, 0.1, 0.2, 0.3, 1.0, 0.0, float(rng.uniform(0, 2)), float(rng.uniform(-1, 0)))
    alpha = float(np.float32(alphas[int(rng.integers(len(alphas)))]))
    op = Op("leaky_relu", "leaky_relu", ("x",), ("y",), LeakyRelu(alpha))
    return sample_unary(rng, op)


_INT8 = OldForm(
    kind="leaky_relu",
    attributes=LeakyRelu,
    infer=infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=TfliteBinding(("LEAKY_RELU",), _read, _write),
    dtype=DType.INT8,
    limits="int8, any alpha",
)


def _reference_s16(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    positive, negative, sign = _multipliers(op, graph)
    x = inputs[0].astype(np.int64)
    below = sign * multiply_by_quantized_multiplier(x, *negative)
    scaled = np.where(x >= 0, multiply_by_quantized_multiplier(x, *positive), below)
    return (np.clip(scaled, -32768, 32767).astype(np.int16),)


def _select_s16(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT16)
    positive, negative, sign = _multipliers(op, graph)
    params = {
        "multiplier": positive[0],
        "shift": positive[1],
        "negative_multiplier": sign * negative[0],
        "negative_shift": negative[1],
    }
    arguments = {"params": Struct("thimble_leaky_relu_s16_params", params)}
    return sized_kernel(op, graph, "thimble_leaky_relu_s16", arguments)


def _read_s16(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT16)
    return ReadOp(_read_attributes(node), (0,))


def _float_function(op: Op) -> FloatFunction:
    assert isinstance(op.attributes, LeakyRelu)
    return FloatFunction("leaky_relu", op.attributes.alpha)


_INT16 = replace(
    _INT8,
    reference=_reference_s16,
    select=_select_s16,
    sample=int16_sample(_sample),
    tflite=TfliteBinding(("LEAKY_RELU",), _read_s16, _write),
    dtype=DType.INT16,
    limits="int16, any alpha",
)

SPEC = OpSpec((_INT8, _INT16, float_form(_INT8, _float_function, _read_attributes)))
