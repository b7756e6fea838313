"""Operators of two operands or more that broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.frontends.onnx.operators.older import BROADCAST
from toolchain.frontends.onnx.operators.row import Operator, Trait
from toolchain.frontends.onnx.writing import Writer


def _sum(writer: Writer) -> None:
    """Sum of any number of operands, one after another as ONNX Runtime adds them."""
    *others, last = writer.node.inputs
    if not others:
        writer.answer("Identity", [last])
        return
    writer.answer(ADD, [_total(writer, others), last])


def _mean(writer: Writer) -> None:
    operands = writer.node.inputs
    if len(operands) == 1:
        writer.answer("Identity", operands)
        return
    total = _total(writer, operands)
    writer.answer(MUL, [total, writer.constant(1 / len(operands))])


def _total(writer: Writer, operands: Sequence[str]) -> str:
    first, *rest = operands
    for other in rest:
        first = writer.op(ADD, [first, other])
    return first


ADD, MUL, SUB = "Add", "Mul", "Sub"
_TABLE = Trait.IN_TABLES

ROWS = (
    Operator(ADD, _TABLE | Trait.MASKS, older=BROADCAST),
    Operator("And", _TABLE, older=BROADCAST),
    Operator("Div", _TABLE, older=BROADCAST),
    Operator("Equal", _TABLE, older=BROADCAST),
    Operator("Greater", _TABLE, older=BROADCAST),
    Operator("GreaterOrEqual", _TABLE),
    Operator("Less", _TABLE, older=BROADCAST),
    Operator("LessOrEqual", _TABLE),
    Operator("Max", _TABLE),
    Operator("Mean", composed=_mean),
    Operator("Min", _TABLE),
    Operator(MUL, _TABLE, older=BROADCAST),
    Operator("Not", _TABLE),
    Operator("Or", _TABLE, older=BROADCAST),
    Operator(SUB, _TABLE, older=BROADCAST),
    Operator("Sum", composed=_sum),
    Operator("Where", _TABLE | Trait.MASKS),
    Operator("Xor", older=BROADCAST),
)
