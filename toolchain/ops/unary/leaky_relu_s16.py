"""x where x >= 0, alpha * x elsewhere. TFLite LEAKY_RELU, int16 (`QuantizeLeakyRelu`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op
from toolchain.ops import extents
from toolchain.ops.arithmetic.fixed_point import multiply_by_quantized_multiplier
from toolchain.ops.elementwise.common import check_node, require_types
from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.spec import Array, Lowering, ReadOp, TfliteBinding, TfliteNode
from toolchain.ops.unary import leaky_relu
from toolchain.ops.unary.leaky_relu import LeakyRelu, multipliers

_MOST_LEFT_SHIFT = 15
"""An int16 value shifted further leaves int32."""


def _factors(op: Op, graph: Graph) -> tuple[tuple[int, int], tuple[int, int]]:
    """Multiplier and left shift of the positive and of the negative side."""
    positive, negative, sign = multipliers(op, graph)
    return positive, (sign * negative[0], negative[1])


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    positive, negative, sign = multipliers(op, graph)
    x = inputs[0].astype(np.int64)
    below = sign * multiply_by_quantized_multiplier(x, *negative)
    scaled = np.where(x >= 0, multiply_by_quantized_multiplier(x, *positive), below)
    return (np.clip(scaled, -32768, 32767).astype(np.int16),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    require_types(op, graph, DType.INT16)
    positive, negative = _factors(op, graph)
    if max(positive[1], negative[1]) > _MOST_LEFT_SHIFT:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: the output scale is more than 2**{_MOST_LEFT_SHIFT} times "
            "finer than the operand's; requantise the model with a representative data set"
        )
    return Lowering(
        functions=("thimble_leaky_relu_s16",),
        fields={
            "size": graph.output(op).elements,
            "multiplier": positive[0],
            "shift": positive[1],
            "negative_multiplier": negative[0],
            "negative_shift": negative[1],
        },
    )


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT16)
    return ReadOp(LeakyRelu(float(node.options.alpha)), (0,))


_WRITTEN = leaky_relu.SPEC.tflite
assert _WRITTEN is not None

SPEC = replace(
    leaky_relu.SPEC,
    kind="leaky_relu_s16",
    reference=_reference,
    lower=_lower,
    extents=extents.sized("s16"),
    sample=wide_sample(leaky_relu.SPEC.sample),
    tflite=TfliteBinding(("LEAKY_RELU",), _read, _WRITTEN.write),
    dtypes=WIDE,
    limits="int16, any alpha",
)
