"""Natural logarithm; the lowest output where there is none.

TFLite LOG, int8 and int16 (`LogPrepare`).
"""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.libm import logf
from toolchain.ops.unary.float_table import Float32, float_table_spec
from toolchain.ops.unary.float_table_s16 import float_table_s16_spec
from toolchain.ops.unary.unary_f32 import float_form


def _log(x: Float32) -> Float32:
    return logf(x)


def _log_s16(op: kit.AnyOperator, x: Float32) -> Float32:
    lowest = np.float32(op.y.q.scale) * np.float32(-32768)
    return np.where(x > 0, _log(x), lowest).astype(np.float32)


_INT8 = float_table_spec("log", _log)

SPEC = kit.OpSpec((_INT8, float_table_s16_spec(_INT8, _log_s16), float_form(_INT8)))
