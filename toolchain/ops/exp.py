"""Exponential function. TFLite EXP, int8 (`ExpPrepare`)."""

from __future__ import annotations

import numpy as np

from toolchain.ops._float_table import Float32, float_table_spec


def exp_float32(x: Float32) -> Float32:
    with np.errstate(over="ignore"):
        result: Float32 = np.exp(x.astype(np.float64)).astype(np.float32)
    return result


SPEC = float_table_spec("exp", exp_float32)
