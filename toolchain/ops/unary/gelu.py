"""Gaussian error linear unit, exact or by its tanh approximation. Source: TFLite's
`reference/gelu.h`, evaluated in float32 into a table (`GeluPrepare`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.arithmetic.libm import erfcf
from toolchain.ops.elementwise.rows import Formula, Function, OfFunction, Options, elementary

ERF = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True)
class Gelu(OfFunction):
    """`approximate`: by tanh."""

    approximate: bool = False

    @property
    def computes(self) -> str:
        return "gelu_tanh" if self.approximate else "gelu"


EXACT = Formula(
    lambda x: 0.5 * x * (1.0 + ERF(x / math.sqrt(2.0))),
    float_math.gelu,
    lambda x: 0.5 * x * erfcf(x * -math.sqrt(0.5)),
)
TANH = elementary(
    lambda m, x: 0.5 * x * (1.0 + m.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x))),
    own=float_math.gelu_tanh,
)


def _read(node: kit.TfliteNode) -> Gelu:
    return Gelu(bool(node.has_options and node.options.approximate))


def _written(attributes: Gelu) -> Mapping[str, Any]:
    return {"approximate": attributes.approximate}


def _sample(rng: np.random.Generator, rows: Sequence[Function]) -> Gelu:
    return Gelu(bool(rng.random() < 0.5))


OPTIONS = Options(_read, _sample, "GeluOptions", _written)
