"""Natural logarithm; the lowest output where there is none. TFLite LOG, int8 (`LogPrepare`)."""

from __future__ import annotations

import numpy as np

from toolchain.ops._float_table import Float32, float_table_spec


def log_float32(x: Float32) -> Float32:
    with np.errstate(all="ignore"):
        result: Float32 = np.log(x.astype(np.float64)).astype(np.float32)
    return result


SPEC = float_table_spec("log", log_float32)
