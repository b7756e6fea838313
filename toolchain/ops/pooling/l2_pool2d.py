"""Root of the mean square over windows. TFLite L2_POOL_2D, float32 (`reference_ops::L2Pool`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.pooling.common import (
    Pool2D,
    infer_pool,
    pool_axes,
    read_pool,
    sample_pool,
    windows,
    write_pool,
)
from toolchain.ops.pooling.kernels import thimble_l2_pool_f32
from toolchain.ops.readers.float32 import clamped, float32_sample


def _reference(op: kit.Operator[Pool2D], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    result = np.empty(op.y.shape, np.float32)
    with np.errstate(all="ignore"):
        for at in windows(op):
            part = inputs[0].astype(np.float32)[:, at.rows, at.columns]
            taps = part.reshape(len(part), -1, part.shape[3])
            total = np.zeros((len(part), part.shape[3]), np.float32)
            for index in range(taps.shape[1]):
                total = total + taps[:, index] * taps[:, index]
            result[:, at.row, at.column] = np.sqrt(total / np.float32(taps.shape[1]))
    return (clamped(result, op.attributes.activation),)


def _select(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    return thimble_l2_pool_f32.kernel(op)


def _write(op: kit.Operator[Pool2D]) -> kit.WrittenOp:
    return replace(write_pool(op, "L2_POOL_2D"), version=1)


def _sample(rng: np.random.Generator) -> kit.Graph:
    return float32_sample(lambda source: sample_pool(source, "l2_pool2d"), "l2_pool2d")(rng)


SPEC = kit.Form(
    kind="l2_pool2d",
    attributes=Pool2D,
    infer=infer_pool,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("L2_POOL_2D",), read_pool, _write),
    axes=pool_axes,
    dtype=kit.DType.FLOAT32,
    limits="float32, NHWC; padding is not counted",
)
