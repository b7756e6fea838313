"""Products over any axes. TFLite REDUCE_PROD, float32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.ir import Graph, Op
from toolchain.ops.readers.float32 import FLOAT32_ONLY
from toolchain.ops.reduction.common import (
    Reduce,
    infer_reduction,
    read_reduction,
    reduction_axes,
    write_reduction,
)
from toolchain.ops.reduction.common_f32 import float_reduction_sample, rows_of_floats
from toolchain.ops.reduction.kernels import float_kernel
from toolchain.ops.spec import Array, OpSpec, TfliteBinding, WrittenOp


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Multiplied in row-major order."""
    total = np.ones(graph.output(op).elements, np.float32)
    with np.errstate(all="ignore"):
        for row in rows_of_floats(op, graph, inputs):
            total = total * row
    return (total.reshape(graph.output(op).shape),)


def _write(op: Op, graph: Graph) -> WrittenOp:
    return write_reduction(op, graph, "REDUCE_PROD")


def _sample(rng: np.random.Generator) -> Graph:
    return float_reduction_sample(rng, "reduce_prod", Reduce)


SPEC = OpSpec(
    kind="reduce_prod",
    attributes=Reduce,
    infer=infer_reduction,
    reference=_reference,
    select=float_kernel("product"),
    sample=_sample,
    tflite=TfliteBinding(("REDUCE_PROD",), read_reduction, _write),
    axes=reduction_axes,
    dtypes=FLOAT32_ONLY,
    limits="float32; constant axes in at most two groups of neighbours",
)
