"""Truth values: and, or, not, xor. TFLite LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT; ONNX And, ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import (
    infer_broadcast,
    infer_unary,
    sample_broadcast_shapes,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel
from toolchain.ops.readers.onnx_elementwise import emit_stored


class Connective(Enum):
    """Bit 2 * a + b of the value is the result for a and b."""

    AND = 0b1000
    OR = 0b1110
    NOT = 0b0001
    XOR = 0b0110


@dataclass(frozen=True)
class Logical(kit.Attributes):
    """`NOT` has one operand, which the kernel reads as both."""

    connective: Connective


def _infer(op: kit.Operator[Logical]) -> tuple[kit.TensorType, ...]:
    for tensor in op.inputs:
        if tensor is None or tensor.dtype is not kit.DType.BOOL:
            raise ValueError(f"{tensor} is not bool")
    if len(op.inputs) != (1 if op.attributes.connective is Connective.NOT else 2):
        raise ValueError(f"{len(op.inputs)} operands")
    return infer_unary(op) if len(op.inputs) == 1 else infer_broadcast(op)


def _reference(op: kit.Operator[Logical], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    one, two = inputs[0].astype(np.int64), inputs[-1].astype(np.int64)
    return (((op.attributes.connective.value >> (2 * one + two)) & 1).astype(np.bool_),)


def _select(op: kit.Operator[Logical], core: kit.Core) -> kit.Kernel:
    struct = kit.Struct("thimble_logical_params", {"table": op.attributes.connective.value})
    return broadcast_kernel(op, core, "thimble_logical", struct)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    connective = Connective[node.builtin.removeprefix("LOGICAL_")]
    return kit.ReadOp(Logical(connective), tuple(range(len(node.inputs))))


def _write(op: kit.Operator[Logical]) -> kit.WrittenOp:
    name = op.attributes.connective.name
    return kit.WrittenOp(f"LOGICAL_{name}", f"Logical{name.capitalize()}Options")


def _read_onnx(node: kit.OnnxNode) -> None:
    """And, Or, Not and Xor of bools."""
    if not node.plain:
        raise node.unsupported("its operands are not bool")
    attributes = Logical(Connective[node.operator.upper()])
    emit_stored(node, "logical", attributes, node.inputs, kit.DType.BOOL)


def _sample(rng: np.random.Generator) -> kit.Graph:
    connective = list(Connective)[int(rng.integers(3))]
    shapes = sample_broadcast_shapes(rng, 4)
    names = "a" if connective is Connective.NOT else "ab"
    operands = [
        kit.Tensor(name, shape, kit.DType.BOOL) for name, shape in zip(names, shapes, strict=False)
    ]
    return kit.sample("logical", Logical(connective), *operands)


SPEC = kit.Form(
    kind="logical",
    attributes=Logical,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=kit.elementwise_axes,
    tflite=kit.TfliteBinding(
        tuple(f"LOGICAL_{c.name}" for c in Connective if c is not Connective.XOR), _read, _write
    ),
    onnx=kit.OnnxBinding(("And", "Or", "Not", "Xor"), _read_onnx, plain=_read_onnx),
    dtype=kit.DType.BOOL,
    limits="bool, any broadcast",
)
