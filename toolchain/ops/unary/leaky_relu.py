"""x where x >= 0, alpha * x elsewhere. TFLite LEAKY_RELU, int8 and int16.

Arithmetic: `QuantizeLeakyRelu`; parameters as in `LeakyReluPrepare`, in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.elementwise.common import Int64, ratio_float32
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.elementwise.rows import Int8, Int16, OfFunction, Options, Unary


@dataclass(frozen=True)
class LeakyRelu(OfFunction):
    """`alpha` is an exact float32. It may be negative or above 1."""

    alpha: float = 0.01

    @property
    def numbers(self) -> Mapping[str, float]:
        return {"alpha": self.alpha}


def _multipliers(op: kit.Operator[LeakyRelu]) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Multiplier and shift of the positive side, of the negative side's magnitude; alpha's sign."""
    x, y = op.x.q.scale, op.y.q.scale
    slope = ratio_float32(x, op.attributes.alpha, divisor=y)
    identity = quantize_multiplier(ratio_float32(x, divisor=y))
    return identity, quantize_multiplier(abs(slope)), -1 if slope < 0 else 1


def _apply(op: kit.Operator[LeakyRelu], stored: Int64) -> Int64:
    x, y = op.x, op.y
    identity, alpha, sign = _multipliers(op)
    centred = stored - x.q.zero_point
    positive = multiply_by_quantized_multiplier(centred, *identity)
    negative = sign * multiply_by_quantized_multiplier(centred, *alpha)
    scaled = np.where(centred >= 0, positive, negative)
    info = np.iinfo(y.dtype.value)
    clamped: Int64 = np.clip(scaled + y.q.zero_point, int(info.min), int(info.max))
    return clamped


def _kernel_s16(op: kit.Operator[LeakyRelu]) -> kit.Kernel:
    positive, negative, sign = _multipliers(op)
    params = {
        "multiplier": positive[0],
        "shift": positive[1],
        "negative_multiplier": sign * negative[0],
        "negative_shift": negative[1],
    }
    arguments = {"params": kit.Struct("thimble_leaky_relu_s16_params", params)}
    return sized_kernel(op, "thimble_leaky_relu_s16", arguments)


def _read(node: kit.TfliteNode) -> LeakyRelu:
    return LeakyRelu(float(node.options.alpha))


def _written(attributes: LeakyRelu) -> Mapping[str, float]:
    return {"alpha": attributes.alpha}


def _sample(rng: np.random.Generator, rows: Sequence[Unary]) -> LeakyRelu:
    alphas = (0.01, 0.1, 0.2, 0.3, 1.0, 0.0, float(rng.uniform(0, 2)), float(rng.uniform(-1, 0)))
    return LeakyRelu(float(np.float32(alphas[int(rng.integers(len(alphas)))])))


INT8 = Int8(_apply, limits="int8, any alpha")
INT16 = Int16(_apply, _kernel_s16, limits="int16, any alpha")
OPTIONS = Options(_read, _sample, "LeakyReluOptions", _written)
