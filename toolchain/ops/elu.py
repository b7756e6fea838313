"""Exponential linear unit: x, and exp(x) - 1 below 0. TFLite ELU, int8 (`EluPrepare`)."""

from __future__ import annotations

import numpy as np

from toolchain.ops._float_table import Float32, float_table_spec


def _elu(x: Float32) -> Float32:
    below: Float32 = np.expm1(np.minimum(x, 0).astype(np.float64)).astype(np.float32)
    return np.where(x < 0, below, x)


SPEC = float_table_spec("elu", _elu, version=1)
