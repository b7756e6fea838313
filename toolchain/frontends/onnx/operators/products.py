"""Convolutions and matrix products."""

from __future__ import annotations

from toolchain.frontends.onnx.operators.row import Operator, Trait
from toolchain.frontends.onnx.writing import Writer


def _gemm(writer: Writer) -> None:
    """Gemm as a product and a sum, where the third operand is computed or the first one
    constant."""
    node = writer.node
    added = writer.input(2)
    if node.inputs[0] not in writer.known and (not added or added in writer.known):
        return
    operands = []
    for name, flag in zip(node.inputs, ("transA", "transB"), strict=False):
        transposed = node.attributes.get(flag, 0)
        operands.append(writer.op("Transpose", [name], perm=[1, 0]) if transposed else name)
    product = writer.op("MatMul", operands)
    alpha, beta = (float(node.attributes.get(name, 1.0)) for name in ("alpha", "beta"))
    if alpha != 1:
        product = writer.op("Mul", [product, writer.constant(alpha)])
    if not added:
        writer.answer("Identity", [product])
        return
    if beta != 1:
        added = writer.op("Mul", [added, writer.constant(beta)])
    writer.answer("Add", [product, added])


ROWS = (
    Operator("Conv", Trait.PRODUCT),
    Operator("ConvTranspose", Trait.PRODUCT),
    Operator("Gemm", Trait.PRODUCT, composed=_gemm),
    Operator("MatMul", Trait.PRODUCT),
)
