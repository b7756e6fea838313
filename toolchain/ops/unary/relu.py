"""The ReLU family: clamp(x, low, high) with requantisation.

TFLite RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1, int8. Arithmetic: `QuantizedReluX` in
activations.cc and `optimized_ops::ReluX` (which the reference resolver uses too). RELU and RELU6
come in int16, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import (
    check_reach,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    check_node,
    infer_unary,
    ratio_float32,
    reference_unary,
    require_types,
    rescaling,
    sample_unary,
)
from toolchain.ops.elementwise.kernels import sized_kernel, unary_kernel
from toolchain.ops.readers.int16 import as_int16
from toolchain.ops.unary.unary_f32 import FloatFunction, float_form


class Bounds(Enum):
    """The bounds of each kind of ReLU. The value is the operator's name in the TFLite schema."""

    RELU = "RELU"
    RELU6 = "RELU6"
    RELU_N1_TO_1 = "RELU_N1_TO_1"
    RELU_0_TO_1 = "RELU_0_TO_1"

    @property
    def real(self) -> tuple[float, float]:
        """Lower and upper bound as real numbers."""
        return _REAL[self.value]


_REAL = {
    "RELU": (0.0, math.inf),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}


_UNVERSIONED = (Bounds.RELU_N1_TO_1, Bounds.RELU_0_TO_1)
"""LiteRT registers int8 kernels of these as version 1, of the others as version 2."""


@dataclass(frozen=True)
class Relu(kit.Attributes):
    """The bounds that values are clamped to."""

    bounds: Bounds = Bounds.RELU


def _clamp(op: kit.Operator[Relu]) -> tuple[int, int]:
    q = op.y.q

    def stored(real: float) -> int:
        ratio = ratio_float32(real, divisor=q.scale)
        check_reach(abs(ratio), 1)
        return q.zero_point + int(math.copysign(math.floor(abs(ratio) + 0.5), ratio))

    low, high = op.attributes.bounds.real
    info = np.iinfo(op.y.dtype.value)
    highest = int(info.max)
    return max(int(info.min), stored(low)), (
        highest if math.isinf(high) else min(highest, stored(high))
    )


def _requantisation(op: kit.AnyOperator) -> tuple[int, int]:
    x, y = op.x, op.y
    return quantize_multiplier(ratio_float32(x.q.scale, divisor=y.q.scale))


def _apply(op: kit.Operator[Relu], stored: Int64) -> Int64:
    x, y = op.x, op.y
    scaled = multiply_by_quantized_multiplier(stored - x.q.zero_point, *_requantisation(op))
    low, high = _clamp(op)
    # TFLite takes the maximum first: where the bounds cross, the upper one wins.
    clamped: Int64 = np.minimum(np.maximum(scaled + y.q.zero_point, low), high)
    return clamped


def _reference(op: kit.Operator[Relu], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    return reference_unary(op, inputs, lambda stored: _apply(op, stored))


def _select(op: kit.Operator[Relu], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT8)
    low, high = _clamp(op)
    ends = (op.x, op.y)
    line = rescaling(*ends, low, high) if low <= high else None
    return unary_kernel(op, lambda stored: _apply(op, stored), line)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT8)
    return kit.ReadOp(Relu(Bounds(node.builtin)), (0,))


def _write(op: kit.Operator[Relu]) -> kit.WrittenOp:
    bounds = op.attributes.bounds
    return kit.WrittenOp(bounds.value, version=1 if bounds in _UNVERSIONED else 2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    bounds = rng.choice(np.array(list(Bounds), dtype=object))
    return sample_unary(rng, kit.Op("relu", "relu", ("x",), ("y",), Relu(bounds)))


_INT8 = kit.Form(
    kind="relu",
    attributes=Relu,
    infer=infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=kit.TfliteBinding(tuple(b.value for b in Bounds), _read, _write),
    dtype=kit.DType.INT8,
    limits="int8; ReLU, ReLU6, [-1, 1] and [0, 1]; any requantisation",
)


_WIDE_BOUNDS = (Bounds.RELU, Bounds.RELU6)


def _select_s16(op: kit.Operator[Relu], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT16)
    multiplier, shift = _requantisation(op)
    low, high = _clamp(op)
    if low > high:
        raise op.refused(
            f"the output scale {op.y.q.scale:g} is too fine; "
            "requantise the model with a representative data set"
        )
    params = {
        "input_offset": 0,
        "multiplier": multiplier,
        "shift": shift,
        "output_offset": 0,
        "min": low,
        "max": high,
    }
    arguments = {"params": kit.Struct("thimble_requantize_params", params)}
    return sized_kernel(op, "thimble_requantize_s16_s16", arguments)


def _read_s16(node: kit.TfliteNode) -> kit.ReadOp:
    check_node(node, kit.DType.INT16)
    return kit.ReadOp(Relu(Bounds(node.builtin)), (0,))


def _write_s16(op: kit.Operator[Relu]) -> kit.WrittenOp:
    return kit.WrittenOp(op.attributes.bounds.value, version=2)


def _sample_s16(rng: np.random.Generator) -> kit.Graph:
    bounds = _WIDE_BOUNDS[int(rng.integers(len(_WIDE_BOUNDS)))]
    op = kit.Op("relu", "relu", ("x",), ("y",), Relu(bounds))
    return as_int16(sample_unary(rng, op))


def _float_function(op: kit.Operator[Relu]) -> FloatFunction:
    return FloatFunction(op.attributes.bounds.value.lower())


_INT16 = replace(
    _INT8,
    select=_select_s16,
    sample=_sample_s16,
    tflite=kit.TfliteBinding(tuple(b.value for b in _WIDE_BOUNDS), _read_s16, _write_s16),
    dtype=kit.DType.INT16,
    limits="int16; ReLU and ReLU6; any requantisation",
)

SPEC = kit.OpSpec(
    (_INT8, _INT16, float_form(_INT8, _float_function, lambda node: Relu(Bounds(node.builtin))))
)
