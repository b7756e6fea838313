"""Clamped int16 copy, requantised. TFLite RELU and RELU6 (`QuantizedReluX`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op
from toolchain.ops import extents
from toolchain.ops.elementwise.common import check_node, require_types, sample_unary
from toolchain.ops.readers.wide import WIDE, widened
from toolchain.ops.spec import Lowering, ReadOp, TfliteBinding, TfliteNode, WrittenOp
from toolchain.ops.unary import relu
from toolchain.ops.unary.relu import Bounds, Relu, clamp, requantisation

_BOUNDS = (Bounds.RELU, Bounds.RELU6)
_MOST_LEFT_SHIFT = 15
"""An int16 value shifted further leaves int32."""


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    require_types(op, graph, DType.INT16)
    multiplier, shift = requantisation(op, graph)
    low, high = clamp(op, graph)
    if shift > _MOST_LEFT_SHIFT or low > high:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: the output scale {graph.output(op).q.scale:g} is too fine; "
            "requantise the model with a representative data set"
        )
    return Lowering(
        functions=("thimble_requantize_s16_s16",),
        fields={
            "size": graph.output(op).elements,
            "multiplier": multiplier,
            "shift": shift,
            "min": low,
            "max": high,
        },
    )


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT16)
    return ReadOp(Relu(Bounds(node.builtin)), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    assert isinstance(op.attributes, Relu)
    return WrittenOp(op.attributes.bounds.value, version=2)


def _sample(rng: np.random.Generator) -> Graph:
    bounds = _BOUNDS[int(rng.integers(len(_BOUNDS)))]
    return widened(sample_unary(rng, Op("relu", "relu", ("x",), ("y",), Relu(bounds))))


SPEC = replace(
    relu.SPEC,
    kind="relu_s16",
    lower=_lower,
    extents=extents.sized("s16"),
    sample=_sample,
    tflite=TfliteBinding(tuple(b.value for b in _BOUNDS), _read, _write),
    dtypes=WIDE,
    limits="int16; ReLU and ReLU6; any requantisation",
)
