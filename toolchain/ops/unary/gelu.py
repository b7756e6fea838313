"""Gaussian error linear unit, exact or by its tanh approximation. Source: TFLite's
`reference/gelu.h`, evaluated in float32 into a table (`GeluPrepare`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.arithmetic.libm import erfcf
from toolchain.ops.arithmetic.tanhf import tanhf
from toolchain.ops.elementwise.rows import Formula, Function, OfFunction, Options

Real = NDArray[np.float64]
Float32 = NDArray[np.float32]
ERF = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True)
class Gelu(OfFunction):
    """`approximate`: by tanh."""

    approximate: bool = False

    @property
    def computes(self) -> str:
        return "gelu_tanh" if self.approximate else "gelu"


def _real(x: Real) -> Real:
    result: Real = 0.5 * x * (1.0 + ERF(x / math.sqrt(2.0)))
    return result


def _libm(x: Float32) -> Float32:
    tail = erfcf(x * np.float32(-math.sqrt(0.5)))
    exact: Float32 = np.float32(0.5) * x * tail
    return exact


def _real_tanh(x: Real) -> Real:
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    result: Real = 0.5 * x * (1.0 + np.tanh(inner))
    return result


def _libm_tanh(x: Float32) -> Float32:
    half, one = np.float32(0.5), np.float32(1)
    root = np.float32(math.sqrt(2 / math.pi))
    inner = root * (x + np.float32(0.044715) * x * x * x)
    tangent: Float32 = half * x * (one + tanhf(inner.astype(np.float32)))
    return tangent


EXACT = Formula(_real, float_math.gelu, _libm)
TANH = Formula(_real_tanh, float_math.gelu_tanh, _libm_tanh)


def _read(node: kit.TfliteNode) -> Gelu:
    return Gelu(bool(node.has_options and node.options.approximate))


def _written(attributes: Gelu) -> Mapping[str, Any]:
    return {"approximate": attributes.approximate}


def _sample(rng: np.random.Generator, rows: Sequence[Function]) -> Gelu:
    return Gelu(bool(rng.random() < 0.5))


OPTIONS = Options(_read, _sample, "GeluOptions", _written)
