"""Exponential linear unit: x, and exp(x) - 1 below 0. TFLite ELU, int8 (`EluPrepare`)."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.tanhf import expm1f
from toolchain.ops.unary.float_table import Float32, float_table_spec
from toolchain.ops.unary.unary_f32 import float_form


def _elu(x: Float32) -> Float32:
    return np.where(x < 0, expm1f(np.minimum(x, np.float32(0))), x)


_INT8 = float_table_spec("elu", _elu, version=1)

SPEC = kit.OpSpec((_INT8, float_form(_INT8)))
