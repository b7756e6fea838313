"""Largest (or smallest) element over any axes. TFLite REDUCE_MAX and REDUCE_MIN, int8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.ops import extents
from toolchain.ops.readers.onnx_pooling import read_reduction_of
from toolchain.ops.reduction.common import (
    Reduce,
    blocks,
    infer_reduction,
    read_reduction,
    reduced_axes,
    reduction_axes,
    reduction_overlaps,
    sample_reduction,
    write_reduction,
)
from toolchain.ops.spec import (
    ALIKE,
    Array,
    Lowering,
    OnnxBinding,
    OnnxNode,
    OpSpec,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


@dataclass(frozen=True)
class ReduceMax(Reduce):
    """`smallest`: look for the least element instead."""

    smallest: bool = False


def _smallest(op: Op) -> bool:
    assert isinstance(op.attributes, ReduceMax)
    return op.attributes.smallest


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    return infer_reduction(op, graph)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    extreme = np.minimum if _smallest(op) else np.maximum
    found: Array = np.asarray(extreme.reduce(inputs[0], axis=reduced_axes(op, graph)))
    y = graph.output(op)
    return (found.reshape(y.shape).astype(y.dtype.numpy),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    outer, first, middle, second, inner = blocks(op, graph)
    wide = graph.output(op).dtype is DType.INT16
    function = "thimble_reduce_max_s16" if wide else "thimble_reduce_max_s8"
    return Lowering(
        functions=(function,),
        fields={
            "function": function,
            "outer": outer,
            "first": first,
            "middle": middle,
            "second": second,
            "inner": inner,
            "flip": -1 if _smallest(op) else 0,
        },
    )


def _read(node: TfliteNode) -> ReadOp:
    attributes = read_reduction(node).attributes
    assert isinstance(attributes, Reduce)
    smallest = node.builtin == "REDUCE_MIN"
    return ReadOp(ReduceMax(attributes.axes, attributes.keep_dims, smallest=smallest), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return write_reduction(op, graph, "REDUCE_MIN" if _smallest(op) else "REDUCE_MAX")


def _sample(rng: np.random.Generator) -> Graph:
    graph = sample_reduction(rng, "reduce_max")
    op, x, y = graph.ops[0], graph.tensors["x"], graph.tensors["y"]
    assert isinstance(op.attributes, Reduce)
    smallest = bool(rng.random() < 0.4)
    attributes = ReduceMax(op.attributes.axes, op.attributes.keep_dims, smallest=smallest)
    alike = Tensor("y", y.shape, DType.INT8, x.quantisation)
    return Graph.build("sample", [x, alike], [replace(op, attributes=attributes)], ["x"], ["y"])


def _from_onnx(node: OnnxNode, axes: tuple[int, ...], keep_dims: bool) -> ReduceMax:
    return ReduceMax(axes, keep_dims, smallest=node.operator == "ReduceMin")


SPEC = OpSpec(
    quantised=ALIKE,
    kind="reduce_max",
    attributes=ReduceMax,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    extents=extents.extremum,
    sample=_sample,
    tflite=TfliteBinding(("REDUCE_MAX", "REDUCE_MIN"), _read, _write),
    overlaps=reduction_overlaps,
    axes=reduction_axes,
    onnx=OnnxBinding(("ReduceMax", "ReduceMin"), read_reduction_of("reduce_max", _from_onnx)),
    limits="int8; constant axes in at most two groups of neighbours",
)
