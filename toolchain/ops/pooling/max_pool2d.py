"""Maximum over windows. TFLite MAX_POOL_2D, int8, `reference_integer_ops::MaxPool`."""

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
from toolchain.ops.readers.onnx_pooling import read_max_pool
from toolchain.ops.spec import (
    Array,
    Lowering,
    OnnxBinding,
    OpSpec,
    SafeOverlap,
    TfliteBinding,
)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    y = graph.output(op)
    result = np.empty(y.shape, y.dtype.numpy)
    for at in windows(op, graph):
        result[:, at.row, at.column] = inputs[0][:, at.rows, at.columns].max(axis=(1, 2))
    low, high = clamp_range(pool_attributes(op).activation, y)
    return (np.clip(result, low, high).astype(y.dtype.numpy),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    """CMSIS-NN where it has Helium; elsewhere it compares byte by byte, and ours does not."""
    return lower_pool(op, graph, "arm_max_pool_s8" if core.mve else "thimble_max_pool_s8")


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """CMSIS-NN keeps its running maximum in the output pixel."""
    return (SafeOverlap(0, 0, pool_lead_bytes(op, graph, reads_first=not core.mve)),)


SPEC = OpSpec(
    kind="max_pool2d",
    attributes=Pool2D,
    infer=infer_pool,
    reference=_reference,
    lower=_lower,
    extents=product_extents.pool,
    sample=lambda rng: sample_pool(rng, "max_pool2d"),
    tflite=TfliteBinding(
        ("MAX_POOL_2D",), read_pool, lambda op, graph: write_pool(op, graph, "MAX_POOL_2D")
    ),
    overlaps=_overlaps,
    axes=pool_axes,
    onnx=OnnxBinding(("MaxPool", "GlobalMaxPool"), read_max_pool),
    limits="int8, NHWC",
)
