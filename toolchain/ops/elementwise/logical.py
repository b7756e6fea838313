"""Truth values: and, or, not, xor. TFLite LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT; ONNX And, ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    infer_broadcast,
    infer_unary,
    sample_broadcast_shapes,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel, Struct
from toolchain.ops.readers.onnx_elementwise import output_axes
from toolchain.ops.spec import (
    Array,
    OnnxBinding,
    OnnxNode,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


class Connective(Enum):
    """Bit 2 * a + b of the value is the result for a and b."""

    AND = 0b1000
    OR = 0b1110
    NOT = 0b0001
    XOR = 0b0110


@dataclass(frozen=True)
class Logical(Attributes):
    """`NOT` has one operand, which the kernel reads as both."""

    connective: Connective


def _connective(op: Op) -> Connective:
    assert isinstance(op.attributes, Logical)
    return op.attributes.connective


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    for tensor in graph.input_tensors(op):
        if tensor is None or tensor.dtype is not DType.BOOL:
            raise ValueError(f"{tensor} is not bool")
    if len(op.inputs) != (1 if _connective(op) is Connective.NOT else 2):
        raise ValueError(f"{len(op.inputs)} operands")
    return infer_unary(op, graph) if len(op.inputs) == 1 else infer_broadcast(op, graph)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    one, two = inputs[0].astype(np.int64), inputs[-1].astype(np.int64)
    return (((_connective(op).value >> (2 * one + two)) & 1).astype(np.bool_),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    struct = Struct("thimble_logical_params", {"table": _connective(op).value})
    return broadcast_kernel(op, graph, core, "thimble_logical", struct)


def _read(node: TfliteNode) -> ReadOp:
    connective = Connective[node.builtin.removeprefix("LOGICAL_")]
    return ReadOp(Logical(connective), tuple(range(len(node.inputs))))


def _write(op: Op, graph: Graph) -> WrittenOp:
    name = _connective(op).name
    return WrittenOp(f"LOGICAL_{name}", f"Logical{name.capitalize()}Options")


def _read_onnx(node: OnnxNode) -> None:
    """And, Or, Not and Xor of bools."""
    if not node.plain:
        raise node.unsupported("its operands are not bool")
    axes = output_axes(node)
    operands = [node.operand(index, axes) for index in range(node.inputs)]
    attributes = Logical(Connective[node.operator.upper()])
    node.emit("logical", attributes, operands, None, axes, dtype=DType.BOOL)


def _sample(rng: np.random.Generator) -> Graph:
    connective = list(Connective)[int(rng.integers(3))]
    shapes = sample_broadcast_shapes(rng, 4)
    names = "a" if connective is Connective.NOT else "ab"
    operands = [Tensor(name, shape, DType.BOOL) for name, shape in zip(names, shapes, strict=False)]
    out = np.broadcast_shapes(*(t.shape for t in operands))
    y = Tensor("y", tuple(int(d) for d in out), DType.BOOL)
    op = Op("logical", "logical", tuple(names), ("y",), Logical(connective))
    return Graph.build("sample", [*operands, y], [op], list(names), ["y"])


SPEC = OldForm(
    kind="logical",
    attributes=Logical,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=TfliteBinding(
        tuple(f"LOGICAL_{c.name}" for c in Connective if c is not Connective.XOR), _read, _write
    ),
    onnx=OnnxBinding(("And", "Or", "Not", "Xor"), _read_onnx, plain=_read_onnx),
    dtype=DType.BOOL,
    limits="bool, any broadcast",
)
