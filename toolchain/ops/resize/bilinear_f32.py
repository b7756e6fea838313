"""Resize by bilinear interpolation in float32. TFLite RESIZE_BILINEAR, `ResizeBilinear`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.readers.float32 import float32_sample
from toolchain.ops.resize.bilinear import INT8, float_kernel, infer_bilinear, interpolated
from toolchain.ops.resize.common import Resize


def _reference(op: kit.Operator[Resize], inputs: kit.Inputs) -> kit.Arrays:
    return (interpolated(op, inputs[0].astype(np.float32)),)


def _select(op: kit.Operator[Resize], core: kit.Core) -> kit.Kernel:
    return float_kernel(op, "thimble_resize_bilinear_f32")


FLOAT32 = replace(
    INT8,
    infer=infer_bilinear,
    reference=_reference,
    select=_select,
    sample=float32_sample(INT8.sample, INT8.kind),
    dtype=kit.DType.FLOAT32,
)
