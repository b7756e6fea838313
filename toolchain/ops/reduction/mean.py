"""Mean over any axes. TFLite MEAN, int8, `reference_ops::QuantizedMeanOrSum`."""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import extents
from toolchain.ops.readers.onnx_pooling import read_mean
from toolchain.ops.reduction.common import (
    Reduce,
    infer_reduction,
    lower_reduction,
    read_reduction,
    reduction_axes,
    reduction_overlaps,
    reduction_reductions,
    reduction_reference,
    sample_reduction,
    write_reduction,
)
from toolchain.ops.spec import Array, Lowering, OnnxBinding, OpSpec, TfliteBinding


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return reduction_reference(op, graph, inputs, mean=True)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    return lower_reduction(op, graph, mean=True)


SPEC = OpSpec(
    kind="mean",
    attributes=Reduce,
    infer=infer_reduction,
    reference=_reference,
    lower=_lower,
    extents=extents.reduction(1, 1),
    sample=lambda rng: sample_reduction(rng, "mean"),
    tflite=TfliteBinding(
        ("MEAN",), read_reduction, lambda op, graph: write_reduction(op, graph, "MEAN")
    ),
    overlaps=reduction_overlaps,
    axes=reduction_axes,
    reductions=lambda op, graph: reduction_reductions(op, graph, mean=True),
    onnx=OnnxBinding(("GlobalAveragePool", "ReduceMean"), read_mean),
    limits="int8; constant axes in at most two groups of neighbours",
)
