"""Square root, rounded towards zero. TFLite SQRT, int8 and int16 (`SqrtEval`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import check_reach
from toolchain.ops.elementwise.common import Int64, check_node, require_types, sample_unary
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.readers.int16 import int16_sample
from toolchain.ops.unary.float_table import table_spec
from toolchain.ops.unary.unary_f32 import float_form


def _apply(op: kit.AnyOperator, stored: Int64) -> Int64:
    """Of what is negative, where LiteRT stops, that of 0."""
    x, y = op.x.q, op.y.q
    check_reach(math.sqrt((127 - x.zero_point) * x.scale) / y.scale, 1)
    real = np.float32(x.scale) * np.maximum(stored - x.zero_point, 0).astype(np.float32)
    with np.errstate(over="ignore"):
        quotient = np.minimum(np.sqrt(real) / np.float32(y.scale), np.float32(512))
    clamped: Int64 = np.clip(np.trunc(quotient).astype(np.int64) + y.zero_point, -128, 127)
    return clamped


def _sample(rng: np.random.Generator, op: kit.Op) -> kit.Graph:
    """Nothing negative: LiteRT stops there."""
    graph = sample_unary(rng, op)
    tensors = dict(graph.tensors)
    lowest = kit.Quantisation((tensors["x"].q.scale,), (-128,))
    tensors["x"] = replace(tensors["x"], quantisation=lowest)
    return replace(graph, tensors=tensors)


_INT8 = table_spec("sqrt", _apply, _sample)


def _scales_s16(op: kit.AnyOperator) -> tuple[float, float]:
    x, y = op.x.q.scale, op.y.q.scale
    check_reach(math.sqrt(32767 * x) / y, 1)
    return x, y


def _reference_s16(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    x, y = _scales_s16(op)
    real = np.float32(x) * np.maximum(inputs[0], 0).astype(np.float32)
    with np.errstate(over="ignore"):
        quotient = np.minimum(np.sqrt(real) / np.float32(y), np.float32(32767))
    return (np.trunc(quotient).astype(np.int16),)


def _select_s16(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT16)
    x, y = _scales_s16(op)
    params = kit.Struct("thimble_sqrt_s16_params", {"input_scale": x, "output_scale": y})
    return sized_kernel(op, "thimble_sqrt_s16", {"params": params})


def _read_s16(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT16)
    return kit.ReadOp(kit.Attributes(), (0,))


assert _INT8.tflite is not None
_INT16 = replace(
    _INT8,
    reference=_reference_s16,
    select=_select_s16,
    sample=int16_sample(_INT8.sample),
    tflite=kit.TfliteBinding(("SQRT",), _read_s16, _INT8.tflite.write),
    dtype=kit.DType.INT16,
    limits="int16",
)

SPEC = kit.OpSpec((_INT8, _INT16, float_form(_INT8)))
