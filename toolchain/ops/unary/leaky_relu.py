"""x where x >= 0, alpha * x elsewhere. TFLite LEAKY_RELU, int8 and int16.

Arithmetic: `QuantizeLeakyRelu`; parameters as in `LeakyReluPrepare`, in float32.
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
    check_node,
    infer_unary,
    ratio_float32,
    reference_unary,
    require_types,
    sample_unary,
)
from toolchain.ops.elementwise.kernels import sized_kernel, unary_kernel
from toolchain.ops.readers.int16 import int16_sample
from toolchain.ops.unary.unary_f32 import FloatFunction, float_form


@dataclass(frozen=True)
class LeakyRelu(kit.Attributes):
    """`alpha` is an exact float32. It may be negative or above 1."""

    alpha: float = 0.01


def _multipliers(op: kit.Operator[LeakyRelu]) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Of the positive side, of the negative side's magnitude, and alpha's sign."""
    x, y = op.x.q.scale, op.y.q.scale
    slope = ratio_float32(x, op.attributes.alpha, divisor=y)
    identity = quantize_multiplier(ratio_float32(x, divisor=y))
    return identity, quantize_multiplier(abs(slope)), -1 if slope < 0 else 1


def _apply(op: kit.Operator[LeakyRelu], stored: Int64) -> Int64:
    x, y = op.x, op.y
    identity, alpha, sign = _multipliers(op)
    centred = stored - x.q.zero_point
    positive = multiply_by_quantized_multiplier(centred, *identity)
    negative = sign * multiply_by_quantized_multiplier(centred, *alpha)
    scaled = np.where(centred >= 0, positive, negative)
    clamped: Int64 = np.clip(scaled + y.q.zero_point, -128, 127)
    return clamped


def _reference(op: kit.Operator[LeakyRelu], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    return reference_unary(op, inputs, lambda stored: _apply(op, stored))


def _select(op: kit.Operator[LeakyRelu], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT8)
    return unary_kernel(op, lambda stored: _apply(op, stored))


def _read_attributes(node: kit.TfliteNode) -> LeakyRelu:
    return LeakyRelu(float(node.options.alpha))


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT8)
    return kit.ReadOp(_read_attributes(node), (0,))


def _write(op: kit.Operator[LeakyRelu]) -> kit.WrittenOp:
    return kit.WrittenOp(
        "LEAKY_RELU", "LeakyReluOptions", {"alpha": op.attributes.alpha}, version=2
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    alphas = (0.01, 0.1, 0.2, 0.3, 1.0, 0.0, float(rng.uniform(0, 2)), float(rng.uniform(-1, 0)))
    alpha = float(np.float32(alphas[int(rng.integers(len(alphas)))]))
    op = kit.Op("leaky_relu", "leaky_relu", ("x",), ("y",), LeakyRelu(alpha))
    return sample_unary(rng, op)


_INT8 = kit.Form(
    kind="leaky_relu",
    attributes=LeakyRelu,
    infer=infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=kit.TfliteBinding(("LEAKY_RELU",), _read, _write),
    dtype=kit.DType.INT8,
    limits="int8, any alpha",
)


def _reference_s16(
    op: kit.Operator[LeakyRelu], inputs: Sequence[kit.Array]
) -> tuple[kit.Array, ...]:
    positive, negative, sign = _multipliers(op)
    x = inputs[0].astype(np.int64)
    below = sign * multiply_by_quantized_multiplier(x, *negative)
    scaled = np.where(x >= 0, multiply_by_quantized_multiplier(x, *positive), below)
    return (np.clip(scaled, -32768, 32767).astype(np.int16),)


def _select_s16(op: kit.Operator[LeakyRelu], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT16)
    positive, negative, sign = _multipliers(op)
    params = {
        "multiplier": positive[0],
        "shift": positive[1],
        "negative_multiplier": sign * negative[0],
        "negative_shift": negative[1],
    }
    arguments = {"params": kit.Struct("thimble_leaky_relu_s16_params", params)}
    return sized_kernel(op, "thimble_leaky_relu_s16", arguments)


def _read_s16(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT16)
    return kit.ReadOp(_read_attributes(node), (0,))


def _float_function(op: kit.Operator[LeakyRelu]) -> FloatFunction:
    return FloatFunction("leaky_relu", op.attributes.alpha)


_INT16 = replace(
    _INT8,
    reference=_reference_s16,
    select=_select_s16,
    sample=int16_sample(_sample),
    tflite=kit.TfliteBinding(("LEAKY_RELU",), _read_s16, _write),
    dtype=kit.DType.INT16,
    limits="int16, any alpha",
)

SPEC = kit.OpSpec((_INT8, _INT16, float_form(_INT8, _float_function, _read_attributes)))
