"""Natural logarithm; the lowest output where there is none. TFLite LOG, int8 (`LogPrepare`)."""

from __future__ import annotations

from toolchain.ops.arithmetic.libm import logf
from toolchain.ops.unary.float_table import Float32, float_table_spec


def log_float32(x: Float32) -> Float32:
    return logf(x)


SPEC = float_table_spec("log", log_float32)
