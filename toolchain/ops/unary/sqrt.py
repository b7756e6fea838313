"""Square root, rounded towards zero. TFLite SQRT, int8 and int16 (`SqrtEval`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation
from toolchain.ops.arithmetic.fixed_point import check_reach
from toolchain.ops.elementwise.common import Int64, check_node, require_types, sample_unary
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.forms import OpSpec
from toolchain.ops.kernel import Kernel, Struct
from toolchain.ops.readers.int16 import int16_sample
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode
from toolchain.ops.unary.float_table import table_spec
from toolchain.ops.unary.unary_f32 import float_form


def _apply(op: Op, graph: Graph, stored: Int64) -> Int64:
    """Of what is negative, where LiteRT stops, that of 0."""
    x, y = graph.input(op, 0).q, graph.output(op).q
    check_reach(math.sqrt((127 - x.zero_point) * x.scale) / y.scale, 1)
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


def _scales_s16(op: Op, graph: Graph) -> tuple[float, float]:
    x, y = graph.input(op, 0).q.scale, graph.output(op).q.scale
    check_reach(math.sqrt(32767 * x) / y, 1)
    return x, y


def _reference_s16(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y = _scales_s16(op, graph)
    real = np.float32(x) * np.maximum(inputs[0], 0).astype(np.float32)
    with np.errstate(over="ignore"):
        quotient = np.minimum(np.sqrt(real) / np.float32(y), np.float32(32767))
    return (np.trunc(quotient).astype(np.int16),)


def _select_s16(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT16)
    x, y = _scales_s16(op, graph)
    params = Struct("thimble_sqrt_s16_params", {"input_scale": x, "output_scale": y})
    return sized_kernel(op, graph, "thimble_sqrt_s16", {"params": params})


def _read_s16(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT16)
    return ReadOp(Attributes(), (0,))


assert _INT8.tflite is not None
_INT16 = replace(
    _INT8,
    reference=_reference_s16,
    select=_select_s16,
    sample=int16_sample(_INT8.sample),
    tflite=TfliteBinding(("SQRT",), _read_s16, _INT8.tflite.write),
    dtype=DType.INT16,
    limits="int16",
)

SPEC = OpSpec((_INT8, _INT16, float_form(_INT8)))
