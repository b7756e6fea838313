"""ONNX readers of elementwise operators with two operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.elementwise.rows import Binary, Lookup, Reader, Rounded


def arithmetic_readers(row: Binary) -> tuple[Reader, Reader]:
    """The readers of a sum or a product, whose attributes are `Rounded`."""
    made: Callable[..., kit.Attributes] = type(row.attributes)
    multiplies = isinstance(row.attributes, Rounded)
    attributes = partial(made, rounding=kit.Rounding.ONNX) if multiplies else made
    return read_binary(row.name, attributes, multiplies), read_plain(row.name, row.attributes)


def extremum_readers(row: Binary) -> tuple[Reader, Reader]:
    """The readers of Min or Max."""
    return read_extremum(row.name), read_plain(row.name)


def read_binary(
    kind: str, attributes: Callable[[Activation], kit.Attributes], multiplies: bool
) -> Reader:
    """The reader of an operator that becomes `kind`. Operands and result may have
    different scales. `multiplies`: whether it multiplies or divides.
    """

    def read(node: kit.OnnxNode) -> None:
        axes = output_axes(node)
        q = node.output_quantisation()
        for index in (0, 1):
            check_float_constant(node, index, q.scale, multiplies=multiplies)
        inputs = [node.operand(index, axes) for index in (0, 1)]
        node.emit(kind, attributes(Activation(node.fused_activation())), inputs, q, axes)

    return read


def read_extremum(kind: str) -> Reader:
    """Reads Min and Max. All operands are requantised to the scale of the result."""

    def read(node: kit.OnnxNode) -> None:
        axes, q = output_axes(node), node.output_quantisation()
        operands = [node.operand(i, axes, quantisation=q) for i in range(node.inputs)]
        if len(operands) == 1:
            node.emit_like(0, "lookup", Lookup("Identity"), q)
            return
        shapes = [(1,) * (len(axes) - len(s)) + s for s in map(node.shape, range(node.inputs))]
        total, whole = operands[0], shapes[0]
        for operand, shape in zip(operands[1:-1], shapes[1:-1], strict=True):
            whole = tuple(int(d) for d in np.broadcast_shapes(whole, shape))
            stored = tuple(whole[axis] for axis in axes)
            total = node.intermediate(kind, kit.Attributes(), [total, operand], stored, q)
        node.emit(kind, kit.Attributes(), [total, operands[-1]], q, axes)

    return read


def read_plain(
    kind: str, attributes: kit.Attributes | None = None, operands: int = 2, typed_by: int = 0
) -> Reader:
    """Reads `kind` on bools and integers without a scale. Sums and products wrap, as in ONNX
    Runtime. `typed_by`: the operand whose type the result has.
    """

    def read(node: kit.OnnxNode) -> None:
        if node.inputs != operands:
            raise node.unsupported(f"{node.inputs} operands", "export it as several operators")
        emit_stored(
            node, kind, attributes or kit.Attributes(), operands, node.plain_dtype(typed_by)
        )

    return read


def emit_stored(
    node: kit.OnnxNode, kind: str, attributes: kit.Attributes, operands: int, dtype: kit.DType
) -> None:
    """Emit an operator that takes operands as they are stored; `dtype` is its result's."""
    axes = output_axes(node)
    inputs = [node.operand(index, axes) for index in range(operands)]
    node.emit(kind, attributes, inputs, None, axes, dtype=dtype)


def output_axes(node: kit.OnnxNode) -> tuple[int, ...]:
    """The order of the result's dimensions: that of the largest operand, new ones first."""
    axes, rank = node.axes(*range(node.inputs)), len(node.output_shape())
    missing = rank - len(axes)
    return (*range(missing), *(axis + missing for axis in axes))


def check_float_constant(node: kit.OnnxNode, index: int, scale: float, *, multiplies: bool) -> None:
    """Check a constant operand that the model keeps in float and that becomes int8.

    Raises UnsupportedError if rounding it would move a sum by more than half a step of `scale`.
    """
    if (
        node.in_float
        or not node.is_constant(index)
        or node.constant(index).quantisation is not None
    ):
        return
    real = np.abs(node.constant(index).real)
    largest = float(real.max(initial=0.0))
    exact = bool(np.isin(real, (0.0, largest)).all())
    if not exact and (multiplies or largest / 254 > scale / 2):
        raise node.left_in_float(
            f"its constant input {index} is float and too coarse in int8",
            "quantise the whole model (quantize_static with all operator types)",
        )
