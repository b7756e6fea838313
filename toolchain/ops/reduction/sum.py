"""Sum over any axes. TFLite SUM, ONNX ReduceSum: see `mean_or_sum`."""

from __future__ import annotations

from toolchain.ops.readers.onnx_pooling import read_reduction_of
from toolchain.ops.reduction.mean_or_sum import mean_or_sum_spec

SPEC = mean_or_sum_spec("sum", mean=False, onnx=("ReduceSum",), read_onnx=read_reduction_of("sum"))
