"""One over the square root; of what is not positive, the highest output. TFLite RSQRT, int8.

Source: `RsqrtEvalQuantized`, and gemmlowp's Newton iteration in `GetInvSqrtQuantizedMultiplierExp`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation
from toolchain.ops.arithmetic.fixed_point import (
    ScaleError,
    inverse_square_root,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.common import Int64, sample_unary
from toolchain.ops.spec import by_type
from toolchain.ops.unary.float_table import table_spec
from toolchain.ops.unary.unary_f32 import float_form

_EXTRA_BITS = 20


def _apply(op: Op, graph: Graph, stored: Int64) -> Int64:
    x, y = graph.input(op, 0).q, graph.output(op).q
    factor = 1.0 / (math.sqrt(np.float32(x.scale)) * np.float32(y.scale))
    multiplier, shift = quantize_multiplier(float(np.float32(factor)))
    if shift - _EXTRA_BITS < -31:
        raise ScaleError(
            f"its scales make a factor of {factor:.4g}, which LiteRT shifts by more than 31 bits; "
            "requantise the model with a representative data set"
        )
    result = np.full_like(stored, 127)
    for index in np.flatnonzero(stored > x.zero_point):
        root, root_shift = inverse_square_root(int(stored.flat[index]) - x.zero_point)
        one = np.ones(1, np.int64)
        fine = multiply_by_quantized_multiplier(one, root, root_shift + _EXTRA_BITS)
        (value,) = multiply_by_quantized_multiplier(fine, multiplier, shift - _EXTRA_BITS)
        result.flat[index] = np.clip(value + y.zero_point, -128, 127)
    return result


def _sample(rng: np.random.Generator, op: Op) -> Graph:
    """Nothing negative: LiteRT stops there."""
    graph = sample_unary(rng, op)
    tensors = dict(graph.tensors)
    tensors["x"] = replace(
        tensors["x"], quantisation=Quantisation((tensors["x"].q.scale,), (-128,))
    )
    return replace(graph, tensors=tensors)


_INT8 = table_spec("rsqrt", _apply, _sample)

SPEC = by_type({DType.INT8: _INT8, DType.FLOAT32: float_form(_INT8)})
