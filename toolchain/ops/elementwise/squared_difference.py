"""Square of the difference of two tensors, broadcasting. TFLite SQUARED_DIFFERENCE.

Arithmetic: `SquaredDifference` in `squared_difference.cc`, left shift 7; int16 as tflite-micro has
it, without a shift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import (
    Int64,
    sample_binary,
    scaled_operands,
    scales_of,
    stored,
    with_output_scale,
    zero_points_of,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel
from toolchain.ops.elementwise.rows import Arithmetic, of_two
from toolchain.ops.readers.int16 import as_int16

LEFT_SHIFT = 7


@dataclass(frozen=True)
class _Arithmetic(Arithmetic):
    zero_points: tuple[int, int, int]
    scalings: tuple[tuple[int, int], ...]
    y: kit.Tensor

    @property
    def left_shift(self) -> int:
        return 0 if self.y.dtype is kit.DType.INT16 else LEFT_SHIFT

    def apply(self, a: Int64, b: Int64) -> Int64:
        one, two = (
            kit.multiply_by_quantized_multiplier((values - zero) << self.left_shift, *scaling)
            for values, zero, scaling in zip((a, b), self.zero_points, self.scalings, strict=False)
        )
        square = (one - two) * (one - two)
        return stored(kit.multiply_by_quantized_multiplier(square, *self.scalings[2]), self.y)

    def kernel(self, op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        if self.left_shift:
            function = "thimble_squared_difference_s8"
            name = "thimble_squared_difference_params"
            params = {"left_shift": LEFT_SHIFT, "output_offset": self.zero_points[2]}
            params |= scaled_operands(self.scalings, self.zero_points)
        else:
            function = "thimble_squared_difference_s16"
            name = "thimble_squared_difference_s16_params"
            params = dict(scaled_operands(self.scalings))
        params["output_multiplier"], params["output_shift"] = self.scalings[2]
        return broadcast_kernel(op, core, function, kit.Struct(name, params))


def _arithmetic(op: kit.AnyOperator) -> _Arithmetic:
    """Raises UnsupportedError for scales with which TFLite aborts."""
    one, two, out = scales_of(op)
    twice = 2 * max(one, two)
    left_shift = 0 if op.y.dtype is kit.DType.INT16 else LEFT_SHIFT
    reals = (one / twice, two / twice, twice * twice / (out * 4**left_shift))
    if not all(0 < real < 1 for real in reals):
        raise op.refused(
            f"scales {one:g}, {two:g} and {out:g} lie too "
            "far apart; requantise the model with a representative data set"
        )
    scalings = tuple(kit.quantize_multiplier(real) for real in reals)
    return _Arithmetic(zero_points_of(op), scalings, op.y)


def sample(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    """An int8 operator."""
    return sample_binary(rng, kind, attributes, float(2.0 ** rng.uniform(-2, 8)))


def _sample_s16(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    """Squares of int16 are 2^16 times as large as those of int8, in the operands' steps."""
    graph = as_int16(sample(rng, kind, attributes))
    return with_output_scale(graph, graph.tensors["y"].q.scale * 2.0 ** rng.uniform(8, 20))


INT8 = of_two(_arithmetic)
INT16 = replace(INT8, sample=_sample_s16)
