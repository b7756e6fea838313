"""Readers of ONNX operators on values that have no scale: bools, int32 and int64.

They compute with the integers themselves. Sums and products wrap, as in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from toolchain.ir import Attributes, DType, Quantisation
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.elementwise.compare import ONNX_RELATIONS as RELATIONS
from toolchain.ops.elementwise.div import Div
from toolchain.ops.elementwise.multiplication import Mul
from toolchain.ops.elementwise.select import Select
from toolchain.ops.readers.onnx import resolve_axes
from toolchain.ops.readers.onnx_elementwise import output_axes
from toolchain.ops.reduction.cumsum import CumSum
from toolchain.ops.spec import Array, OnnxData, OnnxNode


class Plain:
    """The arithmetic of values without scales."""

    in_float = False
    plain = True
    quantisation = None
    readers: Mapping[str, Callable[[OnnxNode], None]] = MappingProxyType({})

    def kind(self, kind: str, attributes: Attributes) -> tuple[str, Attributes]:
        return kind, attributes

    def dtype(self, dtype: DType) -> DType:
        return dtype

    def constant(
        self, constant: OnnxData, wanted: Quantisation | None
    ) -> tuple[Array, Quantisation | None]:
        return constant.data, None

    def activation(self, bounds: tuple[float, float], output: Quantisation) -> str | None:
        return None


def _pair(kind: str, attributes: Attributes | None = None) -> Callable[[OnnxNode], None]:
    """Of two operands that broadcast."""

    def read(node: OnnxNode) -> None:
        axes = output_axes(node)
        operands = [node.operand(index, axes) for index in range(2)]
        found = attributes or Attributes()
        node.emit(kind, found, operands, None, axes, dtype=node.plain_dtype(0))

    return read


def _quotient(kind: str, attributes: Attributes | None = None) -> Callable[[OnnxNode], None]:
    """By constants other than 0, since a kernel stops at no other divisor."""
    emit = _pair(kind, attributes)

    def read(node: OnnxNode) -> None:
        if not node.constant(1).data.all():
            raise node.unsupported("it divides integers by 0")
        emit(node)

    return read


def _extreme(kind: str) -> Callable[[OnnxNode], None]:
    emit = _pair(kind)

    def read(node: OnnxNode) -> None:
        if node.inputs != 2:
            raise node.unsupported(f"{node.inputs} operands", "export it as several operators")
        emit(node)

    return read


def _where(node: OnnxNode) -> None:
    axes = output_axes(node)
    operands = [node.operand(index, axes) for index in range(3)]
    node.emit("select", Select(), operands, None, axes, dtype=node.plain_dtype(1))


def _cumsum(node: OnnxNode) -> None:
    if node.plain_dtype(0) is not DType.INT32:
        raise node.unsupported("sums of int64", "cast to int32 or float32")
    order = node.axes(0)
    (axis,) = resolve_axes(node, node.integers(1), len(order))
    exclusive, reverse = (bool(node.attribute(name, 0)) for name in ("exclusive", "reverse"))
    attributes = CumSum(order.index(axis), exclusive, reverse)
    node.emit("cumsum", attributes, [node.operand(0, order)], None, order, dtype=DType.INT32)


READERS: Mapping[str, Callable[[OnnxNode], None]] = MappingProxyType(
    {
        "Add": _pair("add", Sum()),
        "CumSum": _cumsum,
        "Div": _quotient("div", Div()),
        "Max": _extreme("maximum"),
        "Min": _extreme("minimum"),
        "Mul": _pair("mul", Mul()),
        "Sub": _pair("sub", Sum()),
        "Where": _where,
    }
)
"""Of operators that have other readers for real values."""
OPERATORS = (
    READERS.keys()
    | {"And", "Mod", "Not", "Or", "TopK", "Xor", *RELATIONS}
    | {"Concat", "Gather", "Slice"}
)
"""All that are read so."""
