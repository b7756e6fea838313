"""Average over windows, padding not counted, halves rounded away from zero.

TFLite AVERAGE_POOL_2D, int8, `reference_integer_ops::AveragePool`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.arithmetic.activation import clamp_range
from toolchain.ops.pooling.common import (
    Pool2D,
    infer_pool,
    lower_pool,
    pool_attributes,
    pool_axes,
    pool_lead_bytes,
    read_pool,
    sample_pool,
    windows,
    write_pool,
)
from toolchain.ops.readers.onnx_pooling import read_average_pool
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.reduction.requantise_sums import Law, RequantiseSums
from toolchain.ops.spec import (
    Array,
    Lowering,
    OnnxBinding,
    OpSpec,
    Reach,
    Reduction,
    SafeOverlap,
    TfliteBinding,
)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    y, lift = graph.output(op), pool_attributes(op).lift
    result = np.empty(y.shape, np.int64)
    for at in windows(op, graph):
        part = inputs[0][:, at.rows, at.columns].astype(np.int64)
        count = part.shape[1] * part.shape[2]
        total = part.sum(axis=(1, 2)) + lift * count
        average = np.sign(total) * ((np.abs(total) + count // 2) // count)
        result[:, at.row, at.column] = average - lift
    low, high = clamp_range(pool_attributes(op).activation, y)
    return (np.clip(result, low, high).astype(y.dtype.numpy),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    """CMSIS-NN where it has Helium; ours elsewhere: fewer instructions and no scratch."""
    if pool_attributes(op).lift:
        return lower_pool(op, graph, "thimble_average_pool_lifted_s8")
    return lower_pool(op, graph, "arm_avgpool_s8" if core.mve else "thimble_average_pool_s8")


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """The kernel sums a window before it writes the average."""
    return (SafeOverlap(0, 0, pool_lead_bytes(op, graph, reads_first=True)),)


def _reductions(op: Op, graph: Graph) -> tuple[Reduction, ...]:
    """Rows and columns of an image that one window covers whole."""
    attributes, x, y = pool_attributes(op), graph.input(op, 0), graph.output(op)
    _, rows, columns, _ = x.shape
    top, _, left, _ = attributes.padding
    tall = y.shape[1] == 1 and attributes.filter_height - top >= rows
    wide = y.shape[2] == 1 and attributes.filter_width - left >= columns
    if not (tall and wide):
        return ()
    count, lift = rows * columns, attributes.lift
    ending = RequantiseSums(
        Law.AWAY,
        count=count,
        bias=lift * count,
        offset=-lift,
        activation=attributes.activation,
    )
    partial = Reduce((1, 2), keep_dims=True)
    return tuple(
        Reduction(x.shape[axis], (Reach(axis),), "partial_sum", partial, lambda: ending)
        for axis in (1, 2)
    )


SPEC = OpSpec(
    kind="average_pool2d",
    attributes=Pool2D,
    infer=infer_pool,
    reference=_reference,
    lower=_lower,
    extents=product_extents.pool,
    sample=lambda rng: sample_pool(rng, "average_pool2d"),
    tflite=TfliteBinding(
        ("AVERAGE_POOL_2D",), read_pool, lambda op, graph: write_pool(op, graph, "AVERAGE_POOL_2D")
    ),
    overlaps=_overlaps,
    axes=pool_axes,
    reductions=_reductions,
    onnx=OnnxBinding(("AveragePool",), read_average_pool),
    limits="int8, NHWC; padding is not counted",
)
