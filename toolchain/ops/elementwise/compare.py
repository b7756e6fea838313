"""Comparisons of two int8 tensors, broadcasting, to bool. TFLite EQUAL, LESS and the others.

Arithmetic: `ComparisonWithScaling`: each operand, times 256, is scaled by its own scale, which must
be below 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    infer_broadcast,
    sample_broadcast_shapes,
    sample_quantisation,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel
from toolchain.ops.kernel import Kernel, Struct
from toolchain.ops.spec import (
    Array,
    OpSpec,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_LEFT_SHIFT = 8


class Relation(Enum):
    """The value says which results are true: 1 for less, 2 for equal, 4 for greater, added up."""

    LESS = 1
    EQUAL = 2
    LESS_EQUAL = 3
    GREATER = 4
    NOT_EQUAL = 5
    GREATER_EQUAL = 6


@dataclass(frozen=True)
class Compare(Attributes):
    """The relation that is tested."""

    relation: Relation


def _relation(op: Op) -> Relation:
    assert isinstance(op.attributes, Compare)
    return op.attributes.relation


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    (output,) = infer_broadcast(op, graph)
    return (TensorType(output.shape, DType.BOOL),)


def _scaled(tensor: Tensor, stored: Int64) -> Int64:
    raised = (stored - tensor.q.zero_point) << _LEFT_SHIFT
    return multiply_by_quantized_multiplier(raised, *quantize_multiplier(tensor.q.scale))


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    one, two = (
        _scaled(graph.input(op, index), values.astype(np.int64))
        for index, values in enumerate(inputs)
    )
    bit = np.array(1) << (1 + np.sign(one - two))
    return ((bit & _relation(op).value) != 0,)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    one, two = graph.input(op, 0), graph.input(op, 1)
    params: dict[str, int] = {"relation": _relation(op).value}
    for number, tensor in enumerate((one, two), 1):
        multiplier, shift = quantize_multiplier(tensor.q.scale)
        if shift > 0:
            raise UnsupportedError(
                f"compare {op.name!r}: {tensor.name!r} has the scale {tensor.q.scale:g}, and "
                "TFLite compares only below 1; requantise the model"
            )
        params |= {
            f"offset_{number}": -tensor.q.zero_point,
            f"multiplier_{number}": multiplier,
            f"shift_{number}": shift,
        }
    struct = Struct("thimble_compare_params", params)
    return broadcast_kernel(op, graph, core, "thimble_compare_s8", struct)


def _read(node: TfliteNode) -> ReadOp:
    for tensor in node.inputs:
        if tensor is None or tensor.dtype is not DType.INT8 or tensor.quantisation is None:
            raise node.unsupported("an operand that is not int8", "quantise the model to int8")
        if tensor.quantisation.per_channel:
            raise node.unsupported("a per-channel operand", "quantise it per tensor")
    return ReadOp(Compare(Relation[node.builtin]), (0, 1))


def _write(op: Op, graph: Graph) -> WrittenOp:
    name = _relation(op).name
    title = "".join(part.capitalize() for part in name.split("_"))
    return WrittenOp(name, f"{title}Options", version=2)


def _sample(rng: np.random.Generator) -> Graph:
    """Often alike in scale, and then often equal."""
    shapes = sample_broadcast_shapes(rng, 4)
    first = sample_quantisation(rng, scale=float(2.0 ** rng.uniform(-9, -0.1)))
    second = sample_quantisation(rng, scale=float(2.0 ** rng.uniform(-9, -0.1)))
    q: list[Quantisation] = [first, first if rng.random() < 0.4 else second]
    constant = int(rng.integers(4))
    operands = []
    for index, (name, shape) in enumerate(zip("ab", shapes, strict=True)):
        data = rng.integers(-128, 128, shape).astype(np.int8) if index == constant else None
        operands.append(Tensor(name, shape, DType.INT8, q[index], data))
    y = Tensor("y", tuple(int(d) for d in np.broadcast_shapes(*shapes)), DType.BOOL)
    relation = list(Relation)[int(rng.integers(6))]
    op = Op("compare", "compare", ("a", "b"), ("y",), Compare(relation))
    inputs = [t.name for t in operands if not t.is_constant]
    return Graph.build("sample", [*operands, y], [op], inputs, ["y"])


SPEC = OpSpec(
    kind="compare",
    attributes=Compare,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=TfliteBinding(tuple(r.name for r in Relation), _read, _write),
    dtypes=frozenset({DType.INT8, DType.BOOL}),
    limits="int8 of scales below 1, any broadcast; gives bool",
)
