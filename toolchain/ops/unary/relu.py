"""The ReLU family: clamp(x, low, high) with requantisation.

TFLite RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1, int8. Arithmetic: `QuantizedReluX` in
activations.cc and `optimized_ops::ReluX` (which the reference resolver uses too). RELU and RELU6
come in int16, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import BOUNDS, Activation, stored_range
from toolchain.ops.elementwise.common import (
    Int64,
    Line,
    rescaling,
    rescaling_factor,
)
from toolchain.ops.elementwise.kernels import requantizing
from toolchain.ops.elementwise.rows import Function, OfFunction, Options, Stored


class Bounds(Enum):
    """The bounds of each kind of ReLU. The value is the operator's name in the TFLite schema."""

    RELU = "RELU"
    RELU6 = "RELU6"
    RELU_N1_TO_1 = "RELU_N1_TO_1"
    RELU_0_TO_1 = "RELU_0_TO_1"

    @property
    def real(self) -> tuple[float, float]:
        """Lower and upper bound as real numbers."""
        if self is Bounds.RELU_0_TO_1:  # no operator fuses it
            return 0.0, 1.0
        return BOUNDS[Activation(self.value)]


@dataclass(frozen=True)
class Relu(OfFunction):
    """The bounds that values are clamped to."""

    bounds: Bounds = Bounds.RELU

    @property
    def computes(self) -> str:
        return self.bounds.value.lower()

    @property
    def numbers(self) -> Mapping[str, float]:
        low, high = self.bounds.real
        return {} if math.isinf(high) else {"low": low, "high": high}


def _clamp(op: kit.Operator[Relu]) -> tuple[int, int]:
    return stored_range(op.attributes.bounds.real, op.y)


def _apply(op: kit.Operator[Relu], stored: Int64) -> Int64:
    centred, scaling = stored - op.x.q.zero_point, rescaling_factor(op.x, op.y)
    scaled = kit.multiply_by_quantized_multiplier(centred, *scaling)
    low, high = _clamp(op)
    # TFLite takes the maximum first: where the bounds cross, the upper one wins.
    clamped: Int64 = np.minimum(np.maximum(scaled + op.y.q.zero_point, low), high)
    return clamped


def _line(op: kit.Operator[Relu]) -> Line | None:
    low, high = _clamp(op)
    return rescaling(op.x, op.y, low, high) if low <= high else None


def _kernel_s16(op: kit.Operator[Relu], core: kit.Core) -> kit.Kernel:
    low, high = _clamp(op)
    if low > high:
        raise op.refused(
            f"the output scale {op.y.q.scale:g} is too fine; "
            "requantise the model with a representative data set"
        )
    return requantizing(op, rescaling_factor(op.x, op.y), low, high)


def _read(node: kit.TfliteNode) -> Relu:
    return Relu(Bounds(node.builtin))


def _sample(rng: np.random.Generator, rows: Sequence[Function]) -> Relu:
    return Relu(Bounds(rows[int(rng.integers(len(rows)))].tflite))


OPTIONS = Options(_read, _sample)
_LIMITS = "; ReLU, ReLU6, [-1, 1] and [0, 1]; any requantisation"
INT8 = Stored(_apply, line=_line, limits=_LIMITS)
UNVERSIONED = replace(INT8, version=1)
"""LiteRT registers int8 kernels of [-1, 1] and [0, 1] as version 1, of the others as version 2."""
INT16 = Stored(_apply, _kernel_s16, limits="; ReLU and ReLU6; any requantisation")
