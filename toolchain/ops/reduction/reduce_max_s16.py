"""Largest (or smallest) int16 element over any axes. TFLite REDUCE_MAX and REDUCE_MIN."""

from __future__ import annotations

from dataclasses import replace

from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.reduction import reduce_max

SPEC = replace(
    reduce_max.SPEC,
    kind="reduce_max_s16",
    sample=wide_sample(reduce_max.SPEC.sample),
    onnx=None,
    dtypes=WIDE,
    limits="int16; constant axes in at most two groups of neighbours",
)
