"""Logistic function 1 / (1 + exp(-x)). TFLite LOGISTIC, int8 (`SigmoidPrepare`) and int16."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.libm import expf
from toolchain.ops.unary.float_table import Float32, float_table_spec
from toolchain.ops.unary.sigmoid_s16 import sigmoid_spec
from toolchain.ops.unary.unary_f32 import float_form


def _logistic(x: Float32) -> Float32:
    one = np.float32(1)
    result: Float32 = one / (one + expf(-x))
    return result


def _output(rng: np.random.Generator) -> kit.Quantisation:
    zero = -128 if rng.random() < 0.8 else int(rng.integers(-128, 128))
    return kit.Quantisation((1 / 256,), (zero,))


_INT8 = float_table_spec("logistic", _logistic, _output, output_scale=1 / 256)

SPEC = kit.OpSpec((_INT8, sigmoid_spec("logistic", 9, 0x7FFF << 10, (0,)), float_form(_INT8)))
