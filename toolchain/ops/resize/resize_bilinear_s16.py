"""Resize int16 by bilinear interpolation. TFLite RESIZE_BILINEAR, `ResizeBilinearInteger`."""

from __future__ import annotations

from dataclasses import replace

from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.resize import resize_bilinear

SPEC = replace(
    resize_bilinear.SPEC,
    kind="resize_bilinear_s16",
    sample=wide_sample(resize_bilinear.SPEC.sample),
    dtypes=WIDE,
    limits="int16, NHWC; the size is constant",
)
