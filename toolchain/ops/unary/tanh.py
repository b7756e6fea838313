"""Hyperbolic tangent. TFLite TANH, int8 (`TanhPrepare`)."""

from __future__ import annotations

import numpy as np

from toolchain.ir import Quantisation
from toolchain.ops.arithmetic.tanhf import tanhf
from toolchain.ops.elementwise.common import sample_quantisation
from toolchain.ops.unary.float_table import float_table_spec


def _output(rng: np.random.Generator) -> Quantisation:
    if rng.random() < 0.6:
        return Quantisation((1 / 128,), (0,))
    return sample_quantisation(rng, scale=float(2.0 ** rng.uniform(-8, -4)))


SPEC = float_table_spec("tanh", tanhf, _output)
