"""Maximum over windows of float32 images. TFLite MAX_POOL_2D, `reference_ops`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.pooling import max_pool2d
from toolchain.ops.pooling.common import lower_float_pool, pool_attributes, pool_lead_bytes, windows
from toolchain.ops.readers.floats import FLOAT, clamped, extreme, float_sample
from toolchain.ops.spec import Array, Lowering, SafeOverlap, no_reductions


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    result = np.empty(graph.output(op).shape, np.float32)
    for at in windows(op, graph):
        part = inputs[0].astype(np.float32)[:, at.rows, at.columns]
        taps = part.reshape(len(part), -1, part.shape[3])
        result[:, at.row, at.column] = extreme(taps.swapaxes(0, 1))
    return (clamped(result, pool_attributes(op).activation),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    return lower_float_pool(op, graph, "thimble_max_pool_f32")


SPEC = replace(
    max_pool2d.SPEC,
    kind="max_pool2d_f32",
    reference=_reference,
    lower=_lower,
    extents=product_extents.window_f32(""),
    overlaps=lambda op, graph, core: (
        SafeOverlap(0, 0, pool_lead_bytes(op, graph, reads_first=True)),
    ),
    sample=float_sample(max_pool2d.SPEC.sample, "max_pool2d_f32"),
    onnx=None,
    reductions=no_reductions,
    dtypes=FLOAT,
    limits="float32, NHWC",
)
