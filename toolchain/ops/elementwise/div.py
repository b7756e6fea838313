"""Quotient of two int8 or int16 tensors, broadcasting. TFLite DIV, ONNX Div.

Arithmetic: `DivElementwise` in `reference/div.h`, with gemmlowp's reciprocal (`GetReciprocal`).
LiteRT refuses a divisor of zero at run time; here the result saturates towards the dividend's sign.
ONNX's division by one number is a straight line (`unary.lookup`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import reciprocal, saturating_doubling_high_mul
from toolchain.ops.elementwise.common import (
    Int64,
    reach,
    sample_binary,
    scales_of,
    with_output_scale,
    zero_points_of,
)
from toolchain.ops.elementwise.integers import check_divisors
from toolchain.ops.elementwise.kernels import broadcast_kernel
from toolchain.ops.elementwise.rows import (
    FUSED,
    Arithmetic,
    Binary,
    Lookup,
    Reader,
    Rounded,
    of_two,
)
from toolchain.ops.readers.int16 import as_int16
from toolchain.ops.readers.onnx_elementwise import read_binary, read_plain

_WORD_BITS = 64
"""Width of the `1ll << exponent` in gemmlowp's RoundingDivideByPOT."""


class Div(Rounded):
    """Attributes of div."""


@cache
def _reciprocals(most: int) -> tuple[Int64, Int64]:
    """Multiplier and shift of each divisor from 0 (not used) to `most`."""
    pairs = [(0, 0), *(reciprocal(divisor) for divisor in range(1, most + 1))]
    return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])


def _most_right_shift(two: kit.Tensor) -> int:
    """The shift for the quotient of 0, which has 31 bits of headroom, by the largest divisor."""
    return 31 + reciprocal(max(reach(two), 1))[1]


def _least_right_shift(one: kit.Tensor, two: kit.Tensor) -> int:
    """The shift for a quotient: the bits of headroom of the largest dividend, and the shift of the
    smallest divisor's reciprocal. A longer left shift leaves TFLite's kernel a negative right one,
    which C does not define, and on which processors differ.
    """
    headroom = 31 - reach(one).bit_length()
    if two.constant is None:
        return headroom
    divisors = np.abs(two.constant.astype(np.int64) - two.q.zero_point)
    least = int(divisors[divisors > 0].min(initial=1 << 15))
    return headroom + reciprocal(least)[1]


@dataclass(frozen=True)
class _Arithmetic(Arithmetic):
    zero_points: tuple[int, int, int]
    multiplier: int
    shift: int
    low: int
    high: int
    wraps: bool = True
    wide: bool = False

    def apply(self, a: Int64, b: Int64) -> Int64:
        a, b = np.broadcast_arrays(a - self.zero_points[0], b - self.zero_points[1])
        dividend, divisor = np.where(b < 0, -a, a), np.abs(b)
        inverses, bits = _reciprocals((1 << 15) if self.wide else 255)
        headroom = 31 - np.ceil(np.log2(np.where(dividend < 0, -dividend, dividend + 1))).astype(
            np.int64
        )
        quotient = saturating_doubling_high_mul(dividend << headroom, inverses[divisor])
        right = bits[divisor] + headroom - self.shift
        scaled = kit.multiply_by_quantized_multiplier(
            quotient, self.multiplier, -np.minimum(right, 31)
        )
        # What is shifted by more than 31 bits x86 shifts by that modulo 32, and so LiteRT does.
        product = saturating_doubling_high_mul(quotient, self.multiplier)
        wrapped = (product >> (right & 31)) + (product >= 0)
        scaled = np.where(right > 31, wrapped if self.wraps else 0, scaled)
        scaled = np.where(divisor == 0, np.sign(dividend) * (1 << (17 if self.wide else 9)), scaled)
        clamped: Int64 = np.clip(scaled + self.zero_points[2], self.low, self.high)
        return clamped

    def kernel(self, op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        zero_1, zero_2, zero_out = self.zero_points
        params = {
            "offset_1": -zero_1,
            "offset_2": -zero_2,
            "output_offset": zero_out,
            "multiplier": self.multiplier,
            "shift": self.shift,
            "min": self.low,
            "max": self.high,
            "wraps": int(self.wraps),
        }
        function = f"thimble_div_{'s16' if self.wide else 's8'}"
        return broadcast_kernel(op, core, function, kit.Struct("thimble_div_params", params))


def _arithmetic(op: kit.Operator[Div]) -> _Arithmetic:
    one, two, out = scales_of(op)
    multiplier, shift = kit.quantize_multiplier(one / (two * out))
    wraps = op.attributes.rounding is kit.Rounding.TFLITE
    overrun = ""
    if shift > _least_right_shift(op.x, op.input(1)):
        overrun = "a negative number"
    elif wraps and _most_right_shift(op.input(1)) - shift >= _WORD_BITS:
        overrun = "64 bits or more"
    if overrun:
        raise op.refused(
            f"scales {one:g}, {two:g} and {out:g} lie so far apart that TFLite shifts right by "
            f"{overrun}, which C leaves undefined; requantise the model with a representative data "
            "set"
        )
    limits = kit.clamp_range(op.attributes.activation, op.y)
    wide = op.y.dtype is kit.DType.INT16
    return _Arithmetic(zero_points_of(op), multiplier, shift, *limits, wraps, wide)


def _read_onnx(node: kit.OnnxNode) -> None:
    if not node.in_float and node.is_constant(1) and node.constant(1).data.size == 1:
        divisor = float(node.constant(1).real.reshape(()))
        if divisor == 0:
            raise node.unsupported("it divides by zero")
        if node.output_shape() == node.shape(0):
            q = node.output_quantisation()
            node.emit_like(0, "lookup", Lookup("Div", (divisor,)), q)
            return
    read_binary("div", lambda activation: Div(activation, kit.Rounding.ONNX), multiplies=True)(node)


def _read_onnx_plain(node: kit.OnnxNode) -> None:
    check_divisors(node)
    read_plain("div", Div())(node)


def readers(row: Binary) -> tuple[Reader, Reader]:
    """Readers of ONNX's operator."""
    return _read_onnx, _read_onnx_plain


def sample(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    """An int8 operator, whose divisor is constant and never zero: LiteRT stops there."""
    while True:
        graph = sample_binary(rng, kind, attributes, float(2.0 ** rng.uniform(-1, 10)))
        divisors = graph.tensors["b"].constant
        zero_point = graph.tensors["b"].q.zero_point
        if divisors is not None and graph.inputs and (divisors != zero_point).all():
            return graph


def _sample_s16(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    graph = as_int16(sample(rng, kind, attributes))
    one, two = (graph.tensors[name].q.scale for name in "ab")
    return with_output_scale(graph, one / two * 2.0 ** rng.uniform(-13, 4))


INT8 = of_two(_arithmetic, limits=f"{FUSED}; a division by zero saturates")
INT16 = replace(INT8, sample=_sample_s16)
