"""Root of the mean square over windows. TFLite L2_POOL_2D, float32 (`reference_ops::L2Pool`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.pooling import common
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.pooling.kernels import thimble_max_pool_f32
from toolchain.ops.readers.float32 import float32_form

_reference = common.float_reference(lambda taps: np.sqrt(common.mean_of(taps * taps)))


def _write(op: kit.Operator[Pool2D]) -> kit.WrittenOp:
    return replace(common.write_pool(op, "L2_POOL_2D"), version=1)


_FORM = replace(
    common.pool_form(
        "l2_pool2d", "L2_POOL_2D", reference=_reference, select=thimble_max_pool_f32.kernel
    ),
    sample=lambda rng: common.sample_pool(rng, "max_pool2d"),
)
SPEC = replace(
    float32_form(_FORM, "float32, NHWC; padding is not counted", _FORM.reference, _FORM.select),
    tflite=kit.TfliteBinding(("L2_POOL_2D",), common.read_pool, _write),
)
