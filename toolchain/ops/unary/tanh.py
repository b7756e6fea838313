"""Hyperbolic tangent. TFLite TANH, int8 (`TanhPrepare`) and int16."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.tanhf import tanhf
from toolchain.ops.elementwise.common import sample_quantisation
from toolchain.ops.unary.float_table import float_table_spec
from toolchain.ops.unary.sigmoid_s16 import sigmoid_spec
from toolchain.ops.unary.unary_f32 import float_form


def _output(rng: np.random.Generator) -> kit.Quantisation:
    if rng.random() < 0.6:
        return kit.Quantisation((1 / 128,), (0,))
    return sample_quantisation(rng, scale=float(2.0 ** rng.uniform(-8, -4)))


_INT8 = float_table_spec("tanh", tanhf, _output)

SPEC = kit.OpSpec((_INT8, sigmoid_spec("tanh", 8, 0xFFFF << 8, (0, 1)), float_form(_INT8)))
