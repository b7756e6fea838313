"""x where x >= 0, alpha * x elsewhere. TFLite LEAKY_RELU, int8 and int16.

Arithmetic: `QuantizeLeakyRelu`; parameters as in `LeakyReluPrepare`, in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import Int64, ratio_float32, rescaling_factor, stored
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.elementwise.rows import Function, OfFunction, Options, Stored


@dataclass(frozen=True)
class LeakyRelu(OfFunction):
    """`alpha` is an exact float32. It may be negative or above 1."""

    alpha: float = 0.01

    @property
    def numbers(self) -> Mapping[str, float]:
        return {"alpha": self.alpha}


def _multipliers(op: kit.Operator[LeakyRelu]) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Factors of the positive side and of the negative side's magnitude, and alpha's sign."""
    slope = ratio_float32(op.x.q.scale, op.attributes.alpha, divisor=op.y.q.scale)
    negative = kit.quantize_multiplier(abs(slope))
    return rescaling_factor(op.x, op.y), negative, -1 if slope < 0 else 1


def _apply(op: kit.Operator[LeakyRelu], values: Int64) -> Int64:
    identity, alpha, sign = _multipliers(op)
    centred = values - op.x.q.zero_point
    positive = kit.multiply_by_quantized_multiplier(centred, *identity)
    negative = sign * kit.multiply_by_quantized_multiplier(centred, *alpha)
    return stored(np.where(centred >= 0, positive, negative), op.y)


def _kernel_s16(op: kit.Operator[LeakyRelu], core: kit.Core) -> kit.Kernel:
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


def _sample(rng: np.random.Generator, rows: Sequence[Function]) -> LeakyRelu:
    alphas = (0.01, 0.1, 0.2, 0.3, 1.0, 0.0, float(rng.uniform(0, 2)), float(rng.uniform(-1, 0)))
    return LeakyRelu(float(np.float32(alphas[int(rng.integers(len(alphas)))])))


INT8 = Stored(_apply, limits=", any alpha")
INT16 = Stored(_apply, _kernel_s16, limits=", any alpha")
OPTIONS = Options(_read, _sample, "LeakyReluOptions", _written)
