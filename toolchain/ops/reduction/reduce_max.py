"""Largest or smallest element over any axes. TFLite REDUCE_MAX and REDUCE_MIN; of bool REDUCE_ANY
and REDUCE_ALL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.readers.float32 import extreme
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.readers.onnx_pooling import read_reduction_of
from toolchain.ops.reduction import common
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.reduction.common_f32 import float_reduction_sample, rows_of_floats
from toolchain.ops.reduction.kernels import extremum_kernel, float_reduction
from toolchain.ops.reduction.plain import integer_forms


@dataclass(frozen=True)
class ReduceMax(Reduce):
    """With `smallest` the least element instead of the largest."""

    smallest: bool = False


def _smallest(op: kit.Operator[ReduceMax]) -> bool:
    return op.attributes.smallest


def _reference(op: kit.Operator[ReduceMax], inputs: kit.Inputs) -> kit.Arrays:
    function = np.minimum if _smallest(op) else np.maximum
    result: kit.Array = np.asarray(function.reduce(inputs[0], axis=common.reduced_axes(op)))
    y = op.y
    return (result.reshape(y.shape).astype(y.dtype.numpy),)


def _reference_float(op: kit.Operator[ReduceMax], inputs: kit.Inputs) -> kit.Arrays:
    result = extreme(rows_of_floats(op, inputs), smallest=_smallest(op))
    return (result.reshape(op.y.shape),)


def _select(op: kit.Operator[ReduceMax], core: kit.Core) -> kit.Kernel:
    wide = op.y.dtype is kit.DType.INT16
    function = "thimble_reduce_max_s16" if wide else "thimble_reduce_max_s8"
    return extremum_kernel(op, function, smallest=_smallest(op))


def _select_float32(op: kit.Operator[ReduceMax], core: kit.Core) -> kit.Kernel:
    return float_reduction(op, "minimum" if _smallest(op) else "maximum")


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    attributes = common.read_reduction(node).attributes
    assert isinstance(attributes, Reduce)
    smallest = node.builtin in ("REDUCE_MIN", "REDUCE_ALL")
    return kit.ReadOp(ReduceMax(attributes.axes, attributes.keep_dims, smallest=smallest), (0,))


def _write(op: kit.Operator[ReduceMax]) -> kit.WrittenOp:
    return common.write_reduction(op, "REDUCE_MIN" if _smallest(op) else "REDUCE_MAX")


def _sample(rng: np.random.Generator) -> kit.Graph:
    graph = common.sample_reduction(rng, "reduce_max")
    op, x = graph.ops[0], graph.tensors["x"]
    assert isinstance(op.attributes, Reduce)
    smallest = bool(rng.random() < 0.4)
    attributes = ReduceMax(op.attributes.axes, op.attributes.keep_dims, smallest=smallest)
    return kit.sample("reduce_max", attributes, x, name="reduce")


def _from_onnx(node: kit.OnnxNode, axes: tuple[int, ...], keep_dims: bool) -> ReduceMax:
    return ReduceMax(axes, keep_dims, smallest=node.operator == "ReduceMin")


def _sample_float(rng: np.random.Generator) -> kit.Graph:
    graph = float_reduction_sample(rng, "reduce_max", ReduceMax)
    (op,) = graph.ops
    assert isinstance(op.attributes, ReduceMax)
    smallest = replace(op.attributes, smallest=bool(rng.random() < 0.4))
    return replace(graph, ops=(replace(op, attributes=smallest),))


_INT8 = kit.Form(
    quantised=kit.ALIKE,
    kind="reduce_max",
    attributes=ReduceMax,
    infer=common.infer_reduction,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("REDUCE_MAX", "REDUCE_MIN"), _read, _write),
    axes=common.reduction_axes,
    onnx=kit.OnnxBinding(("ReduceMax", "ReduceMin"), read_reduction_of("reduce_max", _from_onnx)),
    dtype=kit.DType.INT8,
    limits="int8; constant axes in at most two groups of neighbours",
)
_INT16 = int16_form(_INT8, "int16; constant axes in at most two groups of neighbours")
_FLOAT32 = replace(
    _INT16,
    reference=_reference_float,
    select=_select_float32,
    sample=_sample_float,
    dtype=kit.DType.FLOAT32,
    limits="float32; constant axes in at most two groups of neighbours",
)


def _write_bool(op: kit.Operator[ReduceMax]) -> kit.WrittenOp:
    written = common.write_reduction(op, "REDUCE_ALL" if _smallest(op) else "REDUCE_ANY")
    return replace(written, version=1)


def _sample_bool(rng: np.random.Generator) -> kit.Graph:
    graph = _sample_float(rng)
    return kit.with_tensors(graph, lambda tensor: replace(tensor, dtype=kit.DType.BOOL))


_BOOL = replace(
    _INT16,
    sample=_sample_bool,
    tflite=kit.TfliteBinding(("REDUCE_ANY", "REDUCE_ALL"), _read, _write_bool),
    dtype=kit.DType.BOOL,
    limits="bool; constant axes in at most two groups of neighbours",
)
_INTEGERS = integer_forms(
    _FLOAT32,
    lambda op: "minimum" if _smallest(op) else "maximum",
    limits="constant axes in at most two groups of neighbours",
)
SPEC = kit.OpSpec((_INT8, _INT16, _FLOAT32, _BOOL, *_INTEGERS))
