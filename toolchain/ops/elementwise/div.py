"""Quotient of two int8 or int16 tensors, broadcasting. TFLite DIV, ONNX Div.

Arithmetic: `DivElementwise` in `reference/div.h`, with gemmlowp's reciprocal (`GetReciprocal`).
LiteRT refuses a divisor of zero at run time; here the result saturates towards the dividend's sign.
ONNX's division by one number is a straight line (`unary.lookup`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation, clamp_range, read_activation
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    reciprocal,
    saturating_doubling_high_mul,
)
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    infer_broadcast,
    reach,
    require_types,
    sample_binary,
)
from toolchain.ops.elementwise.functions import BINARY
from toolchain.ops.elementwise.kernels import broadcast_kernel, constant_kernel
from toolchain.ops.elementwise.kinds import binding, plain_forms
from toolchain.ops.readers.int16 import as_int16, int16_form
from toolchain.ops.readers.onnx_elementwise import read_binary, read_plain
from toolchain.ops.unary.lookup import Lookup

_WORD_BITS = 64
"""Width of the `1ll << exponent` in gemmlowp's RoundingDivideByPOT."""


@dataclass(frozen=True)
class Div(kit.Attributes):
    """Attributes of div."""

    activation: Activation = Activation.NONE
    rounding: Rounding = Rounding.TFLITE


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
class _Arithmetic:
    """Everything a quotient depends on besides the operands."""

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
        scaled = multiply_by_quantized_multiplier(quotient, self.multiplier, -np.minimum(right, 31))
        # What is shifted by more than 31 bits x86 shifts by that modulo 32, and so LiteRT does.
        product = saturating_doubling_high_mul(quotient, self.multiplier)
        wrapped = (product >> (right & 31)) + (product >= 0)
        scaled = np.where(right > 31, wrapped if self.wraps else 0, scaled)
        scaled = np.where(divisor == 0, np.sign(dividend) * (1 << (17 if self.wide else 9)), scaled)
        clamped: Int64 = np.clip(scaled + self.zero_points[2], self.low, self.high)
        return clamped


def _arithmetic(op: kit.Operator[Div]) -> _Arithmetic:
    one, two, y = op.x, op.input(1), op.y
    multiplier, shift = quantize_multiplier(one.q.scale / (two.q.scale * y.q.scale))
    wide = y.dtype is kit.DType.INT16
    if shift > _least_right_shift(one, two):
        raise op.refused(
            f"scales {one.q.scale:g}, {two.q.scale:g} and {y.q.scale:g} lie "
            "so far apart that TFLite shifts right by a negative number, which C leaves undefined; "
            "requantise the model with a representative data set"
        )
    wraps = op.attributes.rounding is Rounding.TFLITE
    if wraps and _most_right_shift(two) - shift >= _WORD_BITS:
        raise op.refused(
            f"scales {one.q.scale:g}, {two.q.scale:g} and {y.q.scale:g} lie "
            "so far apart that TFLite shifts right by 64 bits or more, which C leaves undefined; "
            "requantise the model with a representative data set"
        )
    zero_points = (one.q.zero_point, two.q.zero_point, y.q.zero_point)
    limits = clamp_range(op.attributes.activation, y)
    return _Arithmetic(zero_points, multiplier, shift, *limits, wraps, wide)


def _reference(op: kit.Operator[Div], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    a, b = (values.astype(np.int64) for values in inputs)
    return (_arithmetic(op).apply(a, b).astype(op.y.dtype.numpy),)


def _select(op: kit.Operator[Div], core: kit.Core) -> kit.Kernel:
    dtype = op.y.dtype
    require_types(op, dtype)
    arithmetic = _arithmetic(op)
    of_one = constant_kernel(op, arithmetic.apply) if dtype is kit.DType.INT8 else None
    if of_one is not None:
        return of_one
    struct = kit.Struct(
        "thimble_div_params",
        {
            "offset_1": -arithmetic.zero_points[0],
            "offset_2": -arithmetic.zero_points[1],
            "output_offset": arithmetic.zero_points[2],
            "multiplier": arithmetic.multiplier,
            "shift": arithmetic.shift,
            "min": arithmetic.low,
            "max": arithmetic.high,
            "wraps": int(arithmetic.wraps),
        },
    )
    return broadcast_kernel(op, core, f"thimble_div_s{8 * dtype.size_bytes}", struct)


def _read(node: kit.TfliteNode) -> Div:
    return Div(read_activation(node))


def _read_onnx(node: kit.OnnxNode) -> None:
    if not node.in_float and node.is_constant(1) and node.constant(1).data.size == 1:
        divisor = float(node.constant(1).real.reshape(()))
        if divisor == 0:
            raise node.unsupported("it divides by zero")
        if node.output_shape() == node.shape(0):
            q = node.output_quantisation()
            node.emit_like(0, "lookup", Lookup("Div", (divisor,)), q)
            return
    read_binary("div", lambda activation: Div(activation, Rounding.ONNX))(node)


def _sample(rng: np.random.Generator) -> kit.Graph:
    """The divisor is constant, and never zero: LiteRT stops there."""
    activation = rng.choice(np.array(list(Activation), dtype=object))
    op = kit.Op("div", "div", ("a", "b"), ("y",), Div(activation))
    while True:
        graph = sample_binary(rng, op, float(2.0 ** rng.uniform(-1, 10)))
        divisor = graph.tensors["b"]
        if divisor.constant is None or not graph.inputs:
            continue
        if not (divisor.constant == divisor.q.zero_point).any():
            return graph


def _read_onnx_plain(node: kit.OnnxNode) -> None:
    """By constants other than 0, since a kernel stops at no other divisor."""
    if not node.constant(1).data.all():
        raise node.unsupported("it divides integers by 0")
    read_plain("div", Div())(node)


_INT8 = kit.Form(
    kind="div",
    attributes=Div,
    infer=infer_broadcast,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=binding("div", 2, kit.DType.INT8, read=_read),
    onnx=kit.OnnxBinding((BINARY["div"].onnx,), _read_onnx, plain=_read_onnx_plain),
    dtype=kit.DType.INT8,
    limits="int8, any broadcast, fused activation; a division by zero saturates",
)


def _sample_s16(rng: np.random.Generator) -> kit.Graph:
    graph = as_int16(_sample(rng))
    a, b, y = (graph.tensors[name] for name in "aby")
    scale = float(np.float32(a.q.scale / b.q.scale * 2.0 ** rng.uniform(-13, 4)))
    fine = replace(y, quantisation=kit.Quantisation((scale,), (0,)))
    return replace(graph, tensors={**graph.tensors, "y": fine})


_INT16 = replace(
    int16_form(_INT8, "int16, any broadcast, fused activation; a division by zero saturates"),
    sample=_sample_s16,
    tflite=binding("div", 2, kit.DType.INT16, read=_read),
)
*_PLAIN, _INT64 = plain_forms(_INT8, _read)

SPEC = kit.OpSpec((_INT8, _INT16, *_PLAIN, replace(_INT64, tflite=None, onnx=_INT8.onnx)))
