"""Depthwise convolution of a float image with int8 filters, as ONNX quantises dynamically.

See `dynamic_conv2d`, which reads it. All filters have one zero point.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.depthwise_conv2d_s8 import S8
from toolchain.ops.hybrid.convolutions import HybridConvolution, hybrid_depthwise
from toolchain.ops.hybrid.dynamic import LIMITS, dynamic_sample


def _attributes(op: kit.Op, rng: np.random.Generator) -> kit.Attributes:
    return HybridConvolution.of(op, Range.ONNX)


SPEC = replace(
    hybrid_depthwise(S8),
    kind="dynamic_depthwise_conv2d",
    sample=dynamic_sample(S8, "dynamic_depthwise_conv2d", 3, _attributes, alike=True),
    tflite=None,
    onnx=None,
    made_by_passes=True,
    dtype=kit.DType.FLOAT32,
    weights=None,
    name="",
    limits=f"{LIMITS}; made of a ConvInteger whose groups have one channel",
)
