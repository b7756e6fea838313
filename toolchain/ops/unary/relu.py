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

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op
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
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import Kernel, Struct
from toolchain.ops.readers.int16 import as_int16
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp
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
class Relu(Attributes):
    """The bounds that values are clamped to."""

    bounds: Bounds = Bounds.RELU


def _clamp(op: Op, graph: Graph) -> tuple[int, int]:
    assert isinstance(op.attributes, Relu)
    q = graph.output(op).q

    def stored(real: float) -> int:
        ratio = ratio_float32(real, divisor=q.scale)
        check_reach(abs(ratio), 1)
        return q.zero_point + int(math.copysign(math.floor(abs(ratio) + 0.5), ratio))

    low, high = op.attributes.bounds.real
    info = np.iinfo(graph.output(op).dtype.value)
    highest = int(info.max)
    return max(int(info.min), stored(low)), (
        highest if math.isinf(high) else min(highest, stored(high))
    )


def _requantisation(op: Op, graph: Graph) -> tuple[int, int]:
    x, y = graph.input(op, 0), graph.output(op)
    return quantize_multiplier(ratio_float32(x.q.scale, divisor=y.q.scale))


def _apply(op: Op, graph: Graph, stored: Int64) -> Int64:
    x, y = graph.input(op, 0), graph.output(op)
    scaled = multiply_by_quantized_multiplier(stored - x.q.zero_point, *_requantisation(op, graph))
    low, high = _clamp(op, graph)
    # TFLite takes the maximum first: where the bounds cross, the upper one wins.
    clamped: Int64 = np.minimum(np.maximum(scaled + y.q.zero_point, low), high)
    return clamped


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return reference_unary(op, graph, inputs, lambda stored: _apply(op, graph, stored))


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT8)
    low, high = _clamp(op, graph)
    ends = (graph.input(op, 0), graph.output(op))
    line = rescaling(*ends, low, high) if low <= high else None
    return unary_kernel(op, graph, lambda stored: _apply(op, graph, stored), line)


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT8)
    return ReadOp(Relu(Bounds(node.builtin)), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, Relu)
    bounds = op.attributes.bounds
    return WrittenOp(bounds.value, version=1 if bounds in _UNVERSIONED else 2)


def _sample(rng: np.random.Generator) -> Graph:
    bounds = rng.choice(np.array(list(Bounds), dtype=object))
    return sample_unary(rng, Op("relu", "relu", ("x",), ("y",), Relu(bounds)))


_INT8 = OldForm(
    kind="relu",
    attributes=Relu,
    infer=infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=TfliteBinding(tuple(b.value for b in Bounds), _read, _write),
    dtype=DType.INT8,
    limits="int8; ReLU, ReLU6, [-1, 1] and [0, 1]; any requantisation",
)


_WIDE_BOUNDS = (Bounds.RELU, Bounds.RELU6)


def _select_s16(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT16)
    multiplier, shift = _requantisation(op, graph)
    low, high = _clamp(op, graph)
    if low > high:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: the output scale {graph.output(op).q.scale:g} is too fine; "
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
    arguments = {"params": Struct("thimble_requantize_params", params)}
    return sized_kernel(op, graph, "thimble_requantize_s16_s16", arguments)


def _read_s16(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT16)
    return ReadOp(Relu(Bounds(node.builtin)), (0,))


def _write_s16(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, Relu)
    return WrittenOp(op.attributes.bounds.value, version=2)


def _sample_s16(rng: np.random.Generator) -> Graph:
    bounds = _WIDE_BOUNDS[int(rng.integers(len(_WIDE_BOUNDS)))]
    op = Op("relu", "relu", ("x",), ("y",), Relu(bounds))
    return as_int16(sample_unary(rng, op))


def _float_function(op: Op) -> FloatFunction:
    assert isinstance(op.attributes, Relu)
    return FloatFunction(op.attributes.bounds.value.lower())


_INT16 = replace(
    _INT8,
    select=_select_s16,
    sample=_sample_s16,
    tflite=TfliteBinding(tuple(b.value for b in _WIDE_BOUNDS), _read_s16, _write_s16),
    dtype=DType.INT16,
    limits="int16; ReLU and ReLU6; any requantisation",
)

SPEC = OpSpec(
    (_INT8, _INT16, float_form(_INT8, _float_function, lambda node: Relu(Bounds(node.builtin))))
)
