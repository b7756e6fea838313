"""Square root, rounded towards zero. TFLite SQRT, int8 (`SqrtEval`)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation
from toolchain.ops.arithmetic.fixed_point import check_reach
from toolchain.ops.elementwise.common import Int64, sample_unary
from toolchain.ops.spec import by_type
from toolchain.ops.unary.float_table import table_spec
from toolchain.ops.unary.unary_f32 import float_form


def _apply(op: Op, graph: Graph, stored: Int64) -> Int64:
    """Of what is negative, where LiteRT stops, that of 0."""
    x, y = graph.input(op, 0).q, graph.output(op).q
    check_reach(math.sqrt(255 * x.scale) / y.scale, 1)
    real = np.float32(x.scale) * np.maximum(stored - x.zero_point, 0).astype(np.float32)
    with np.errstate(over="ignore"):
        quotient = np.minimum(np.sqrt(real) / np.float32(y.scale), np.float32(512))
    clamped: Int64 = np.clip(np.trunc(quotient).astype(np.int64) + y.zero_point, -128, 127)
    return clamped


def _sample(rng: np.random.Generator, op: Op) -> Graph:
    """Nothing negative: LiteRT stops there."""
    graph = sample_unary(rng, op)
    tensors = dict(graph.tensors)
    lowest = Quantisation((tensors["x"].q.scale,), (-128,))
    tensors["x"] = replace(tensors["x"], quantisation=lowest)
    return replace(graph, tensors=tensors)


_INT8 = table_spec("sqrt", _apply, _sample)

SPEC = by_type({DType.INT8: _INT8, DType.FLOAT32: float_form(_INT8)})
