"""Mean over any axes. TFLite MEAN, ONNX GlobalAveragePool and ReduceMean: see `mean_or_sum`."""

from __future__ import annotations

from toolchain.ops.readers.onnx_pooling import read_mean
from toolchain.ops.reduction.mean_or_sum import mean_or_sum_spec

SPEC = mean_or_sum_spec(
    "mean", mean=True, onnx=("GlobalAveragePool", "ReduceMean"), read_onnx=read_mean
)
