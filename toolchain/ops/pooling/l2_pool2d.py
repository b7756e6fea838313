"""Root of the mean square over windows. TFLite L2_POOL_2D, float32 (`reference_ops::L2Pool`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.pooling.common import (
    Pool2D,
    pool_form,
    read_pool,
    sample_pool,
    windows,
    write_pool,
)
from toolchain.ops.pooling.kernels import thimble_l2_pool_f32
from toolchain.ops.readers.float32 import clamped, float32_form


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


_FORM = replace(
    pool_form("l2_pool2d", "L2_POOL_2D", reference=_reference, select=_select),
    sample=lambda rng: sample_pool(rng, "max_pool2d"),
)
SPEC = replace(
    float32_form(_FORM, "float32, NHWC; padding is not counted", _reference, _select),
    tflite=kit.TfliteBinding(("L2_POOL_2D",), read_pool, _write),
)
