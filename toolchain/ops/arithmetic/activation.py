"""Fused activations, and the integer range to which each clamps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

import numpy as np

from toolchain.ir import Tensor
from toolchain.ops.arithmetic.fixed_point import check_reach
from toolchain.ops.spec import TfliteNode


class Activation(Enum):
    """`ActivationFunctionType` of the TFLite schema. The value is its name there."""

    NONE = "NONE"
    RELU = "RELU"
    RELU_N1_TO_1 = "RELU_N1_TO_1"
    RELU6 = "RELU6"


BOUNDS: Mapping[Activation, tuple[float, float]] = MappingProxyType(
    {
        Activation.NONE: (-math.inf, math.inf),
        Activation.RELU: (0.0, math.inf),
        Activation.RELU_N1_TO_1: (-1.0, 1.0),
        Activation.RELU6: (0.0, 6.0),
    }
)
"""The least and the largest result, as real numbers."""


def clamp_range(activation: Activation, output: Tensor) -> tuple[int, int]:
    """The smallest and the largest stored value (`CalculateActivationRangeQuantized`).

    Raises ScaleError as `stored_range`.
    """
    return stored_range(BOUNDS[activation], output)


def stored_range(bounds: tuple[float, float], output: Tensor) -> tuple[int, int]:
    """The smallest and the largest stored value within real bounds.

    As in TFLite, bounds are quantised in float32 and rounded half away from zero. Raises ScaleError
    for a bound that does not fit int32, where TFLite's result is undefined.
    """
    info = np.iinfo(output.dtype.value)
    low, high = int(info.min), int(info.max)
    scale, zero_point = np.float32(output.q.scale), output.q.zero_point

    def quantised(value: float) -> int:
        ratio = float(np.float32(value)) / float(scale)
        check_reach(abs(ratio), 1)
        ratio = float(np.float32(value) / scale)
        return zero_point + int(math.copysign(math.floor(abs(ratio) + 0.5), ratio))

    least, most = bounds
    return (
        low if math.isinf(least) else max(low, quantised(least)),
        high if math.isinf(most) else min(high, quantised(most)),
    )


def read_activation(node: TfliteNode) -> Activation:
    """The fused activation in a TFLite operator's options. Raises UnsupportedError for an unknown
    one.
    """
    name = node.options.fusedActivationFunction
    if name not in Activation.__members__:
        raise node.unsupported(f"the fused activation {name}", "apply it in an operator of its own")
    return Activation[name]
