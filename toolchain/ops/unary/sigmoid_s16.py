"""Int16 functions by interpolation in one table of the logistic function: LOGISTIC and TANH.

Arithmetic: LiteRT `reference_integer_ops::Logistic` and `Tanh` for int16, with the multipliers of
`SigmoidPrepare` and `TanhPrepare`; tanh(x) = 2 logistic(2 x) - 1. CMSIS-NN's
`arm_nn_activation_s16` takes power-of-two scales only, so the kernel is Thimble's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import ScaleError, wrap_int32
from toolchain.ops.elementwise.common import Int64, sample_shape
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.elementwise.rows import Stored
from toolchain.ops.readers.int16 import power_of_two

OUTPUT_SCALE = 1 / 32768
_FRACTION_BITS = 12


@cache
def table() -> NDArray[np.int64]:
    """logistic(i / 24) in Q0.16, for i from 0 to 255, as LiteRT and CMSIS-NN have it.

    An entry is lowered by half of what interpolation to the next errs midway; the last is the
    largest there is.
    """

    def logistic(steps: NDArray[np.float64]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = 65536 / (1 + np.exp(-steps / 24))
        return values

    steps = np.arange(256, dtype=np.float64)
    midway = (logistic(steps) + logistic(steps + 1)) / 2 - logistic(steps + 0.5)
    entries = np.floor(logistic(steps) - midway / 2 + 0.5).astype(np.int64)
    entries[-1] = 65535
    return entries


@dataclass(frozen=True)
class _Function:
    """`bits`: how many lie between entries of the table."""

    bits: int
    largest: int
    power_of_two_shifts: tuple[int, ...]

    def scaling(self, scale: float) -> tuple[int, int]:
        """The factor of the input, and the right shift that follows."""
        exponent = power_of_two(scale)
        if exponent is not None and _FRACTION_BITS + exponent in self.power_of_two_shifts:
            return 3 << (_FRACTION_BITS + exponent), 0
        multiplier, shift = scale * 4096.0 * 3.0, 0
        while multiplier <= 32767.0 / 2.0 and shift <= 30:
            multiplier, shift = 2 * multiplier, shift + 1
        if multiplier >= 1 << 31:
            raise ScaleError(
                f"the input scale {scale:g} overruns 32 bits, which C leaves undefined; requantise "
                "the model with a representative data set"
            )
        if multiplier < 1:  # LiteRT takes 0 for the mark of a power of two
            return wrap_int32(3 << shift), 0
        return int(multiplier), shift


def sigmoid(bits: int, largest: int, power_of_two_shifts: tuple[int, ...], is_tanh: bool) -> Stored:
    """`logistic` or `tanh` of int16."""
    function = _Function(bits, largest, power_of_two_shifts)

    def apply(op: kit.AnyOperator, stored: Int64) -> Int64:
        multiplier, shift = function.scaling(op.x.q.scale)
        half = 1 << (shift - 1) if shift else 0
        data = wrap_int32(stored * multiplier + half) >> shift
        size = np.abs(data)
        place = np.minimum(size >> bits, 254)
        low, high = table()[place], table()[place + 1]
        value = (low << bits) + (size & ((1 << bits) - 1)) * (high - low)
        value = np.where(size >> bits >= 255, largest, value)
        if is_tanh:
            value = value - (1 << 23)
            return np.where(data >= 0, value + (1 << 7), -value + (1 << 7) - 1) >> 8
        return np.where(data >= 0, value + (1 << 9), (1 << 25) - value + (1 << 9) - 1) >> 10

    def kernel(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        multiplier, shift = function.scaling(op.x.q.scale)
        above = kit.Constant(
            "table",
            lambda: (table() - 32768).astype(np.int16),
            "logistic(i / 24) - 1/2, Q0.16",
        )
        arguments = {"multiplier": multiplier, "shift": shift}
        return sized_kernel(op, f"thimble_{op.kind}_table_s16", arguments, above)

    return Stored(apply, kernel, output_scale=OUTPUT_SCALE, sample=_sample, version=3)


def _sample(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    shape = sample_shape(rng, 4, 20)
    exponent = rng.uniform(-17, -9)
    if rng.random() < 0.3:
        exponent = round(exponent)
    q = kit.Quantisation((float(np.float32(2.0**exponent)),), (0,))
    x = kit.Tensor("x", shape, kit.DType.INT16, q)
    return kit.sample(kind, attributes, x, q=kit.Quantisation((OUTPUT_SCALE,), (0,)))
