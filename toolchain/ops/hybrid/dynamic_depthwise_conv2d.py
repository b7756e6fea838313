"""Depthwise convolution of a float image with int8 filters, as ONNX quantises dynamically.

See `dynamic_conv2d`, which reads it. All filters have one zero point.
"""

from __future__ import annotations

from toolchain.ops.convolution.depthwise_conv2d_s8 import S8
from toolchain.ops.hybrid.convolutions import HybridConvolution, hybrid_depthwise
from toolchain.ops.hybrid.dynamic import LIMITS, dynamic_form, dynamic_sample

KIND = "dynamic_depthwise_conv2d"
SPEC = dynamic_form(
    hybrid_depthwise(S8),
    kind=KIND,
    sample=dynamic_sample(S8, KIND, 3, HybridConvolution.of_onnx, alike=True),
    onnx=None,
    made_by_passes=True,
    limits=f"{LIMITS}; made of a ConvInteger whose groups have one channel",
)
