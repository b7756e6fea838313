"""Any function of one int8 operand that ONNX computes in float between two quantised tensors.

DequantizeLinear, the function in float32, QuantizeLinear (halves to even): there are 256 possible
results. They are computed at compile time with ONNX Runtime's own arithmetic. A function that is a
clamped straight line (Relu, Clip) needs no table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.elementwise.common import (
    Int64,
    infer_unary,
    reference_unary,
    require_types,
    rescaling,
    sample_unary,
)
from toolchain.ops.elementwise.functions import UNARY
from toolchain.ops.elementwise.kernels import unary_kernel
from toolchain.ops.elementwise.rows import Lookup, Unary

FUNCTIONS: Mapping[str, Unary] = MappingProxyType(
    {
        row.table or row.onnx: row
        for row in UNARY.values()
        if row.formula.real is not None and (row.table or row.onnx)
    }
)
"""By the name in attributes: the operator's in ONNX, where there is one."""


TABLE = "Table"
"""The function that is given by its results for stored values -128 to 127, as parameters."""
TABLE_OPERATOR = "thimble.Table"
"""The operator that the ONNX front end makes of a chain of functions: one input, and `reals` with
its results.
"""


def _value(op: kit.Operator[Lookup], stored: Int64) -> NDArray[np.float32]:
    """The real result."""
    x = op.x.q
    if op.attributes.function == TABLE:
        return np.array(op.attributes.parameters, np.float32)[stored + 128]
    real = np.float32(x.scale) * (stored - x.zero_point).astype(np.float32)
    function = FUNCTIONS[op.attributes.function].formula.real
    assert function is not None
    values: NDArray[np.float32] = function(real.astype(np.float64), *op.attributes.parameters)
    return values.astype(np.float32)


def _apply(op: kit.Operator[Lookup], stored: Int64) -> Int64:
    y = op.y.q
    with np.errstate(all="ignore"):
        value = _value(op, stored)
        quotient = value / np.float32(y.scale)
    scaled = np.nan_to_num(quotient, nan=-1e9, posinf=1e9, neginf=-1e9)  # NaN as on x86
    result: Int64 = np.clip(np.rint(scaled) + y.zero_point, -128, 127).astype(np.int64)
    return result


def _reference(op: kit.Operator[Lookup], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    return reference_unary(op, inputs, lambda stored: _apply(op, stored))


def _select(op: kit.Operator[Lookup], core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT8)
    x, y = op.x, op.y
    row, line = FUNCTIONS.get(op.attributes.function), None
    if row is not None and row.straight is not None:
        divisor, *bounds = row.straight(*op.attributes.parameters)
        low, high = (
            int(np.clip(np.rint(bound / y.q.scale) + y.q.zero_point, -128, 127)) for bound in bounds
        )
        line = rescaling(x, y, low, high, divisor)
    return unary_kernel(op, lambda stored: _apply(op, stored), line)


def _read(node: kit.OnnxNode) -> None:
    if node.operator == TABLE_OPERATOR:
        reals = tuple(float(real) for real in node.attribute("reals"))
        node.emit_like(0, "lookup", Lookup(TABLE, reals), node.output_quantisation())
        return
    row = onnx_row(node)
    lookup = Lookup(row.table or row.onnx, tuple(onnx_parameters(node, row)))
    stored = node.quantisation(0) if row.keeps else stored_by(row)
    node.emit_like(0, "lookup", lookup, node.output_quantisation(stored))


def onnx_row(node: kit.OnnxNode) -> Unary:
    """The function that an ONNX operator of one operand computes."""
    rows = [row for row in UNARY.values() if row.onnx == node.operator]
    for row in rows:
        if row.where is not None and node.attribute(row.where[0], "") == row.where[1]:
            return row
    return rows[0]


def onnx_parameters(node: kit.OnnxNode, row: Unary) -> Iterator[float]:
    """The values that the function takes besides its operand."""
    for given in row.parameters:
        if given.index is not None and node.has(given.index):
            real = node.constant(given.index).real
            if real.size != 1:
                raise node.unsupported(f"its input {given.index} is not one number")
            yield float(np.float32(real.reshape(())))
        elif given.attribute:
            yield float(node.attribute(given.attribute, given.value))
        else:
            yield given.value


def stored_by(row: Unary) -> kit.Quantisation | None:
    """How results are stored where the model leaves them in float: in the range of the function, as
    TFLite does."""
    if row.stored is None:
        return None
    scale, zero_point = row.stored
    return kit.Quantisation((scale,), (zero_point,))


def _sample(rng: np.random.Generator) -> kit.Graph:
    """A function whose parameters have usual values, or a clip."""
    names = sorted(name for name, row in FUNCTIONS.items() if not _takes_inputs(row))
    name = str(rng.choice(names))
    parameters = tuple(given.value for given in FUNCTIONS[name].parameters)
    if rng.random() < 0.3:
        name, parameters = "Clip", (float(-rng.uniform(0, 2)), float(rng.uniform(0, 9)))
    return sample_unary(rng, "lookup", Lookup(name, parameters))


def _takes_inputs(row: Unary) -> bool:
    return any(given.index is not None for given in row.parameters)


_OPERATORS = {row.onnx: row.table for row in UNARY.values() if row.onnx and row.where is None}

SPEC = kit.Form(
    kind="lookup",
    attributes=Lookup,
    infer=infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=kit.elementwise_axes,
    onnx=kit.OnnxBinding(
        (
            *(name for name, table in _OPERATORS.items() if table),
            TABLE_OPERATOR,
            *sorted(name for name, table in _OPERATORS.items() if not table),
        ),
        _read,
    ),
    limits="int8, any function of one operand; ONNX only",
)
