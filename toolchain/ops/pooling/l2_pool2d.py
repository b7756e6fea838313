"""Root of the mean square over windows. TFLite L2_POOL_2D, float32 (`reference_ops::L2Pool`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.pooling.common import (
    Pool2D,
    infer_pool,
    pool_attributes,
    pool_axes,
    read_pool,
    sample_pool,
    windows,
    write_pool,
)
from toolchain.ops.pooling.kernels import thimble_l2_pool_f32
from toolchain.ops.readers.float32 import clamped, float32_sample
from toolchain.ops.spec import Array, TfliteBinding, WrittenOp


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    result = np.empty(graph.output(op).shape, np.float32)
    with np.errstate(all="ignore"):
        for at in windows(op, graph):
            part = inputs[0].astype(np.float32)[:, at.rows, at.columns]
            taps = part.reshape(len(part), -1, part.shape[3])
            total = np.zeros((len(part), part.shape[3]), np.float32)
            for index in range(taps.shape[1]):
                total = total + taps[:, index] * taps[:, index]
            result[:, at.row, at.column] = np.sqrt(total / np.float32(taps.shape[1]))
    return (clamped(result, pool_attributes(op).activation),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return thimble_l2_pool_f32.kernel(op, graph)


def _write(op: Op, graph: Graph) -> WrittenOp:
    return replace(write_pool(op, graph, "L2_POOL_2D"), version=1)


def _sample(rng: np.random.Generator) -> Graph:
    return float32_sample(lambda source: sample_pool(source, "l2_pool2d"), "l2_pool2d")(rng)


SPEC = OldForm(
    kind="l2_pool2d",
    attributes=Pool2D,
    infer=infer_pool,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("L2_POOL_2D",), read_pool, _write),
    axes=pool_axes,
    dtype=DType.FLOAT32,
    limits="float32, NHWC; padding is not counted",
)
