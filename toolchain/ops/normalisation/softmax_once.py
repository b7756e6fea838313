"""Softmax of int8 rows, rounded once. ONNX Softmax between two quantised tensors.

ONNX computes it in float. An int8 row has at most 256 different exponentials, so they are a table
in flash. Sums and quotients are float32, with the same operations on every machine. TFLite's
softmax is in fixed point: see `softmax`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.rounding import nearest
from toolchain.ops.elementwise import common as elementwise
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.readers.onnx import resolve_axes

NATURAL = kit.Quantisation((1 / 256,), (-128,))
"""The output's quantisation if the model keeps the result in float; the one TFLite uses."""

_LEAST = math.exp(5)
"""ONNX Runtime's QLinearSoftmax scales its exponentials so that the sum of a row is this far below
the largest float32, and multiplies each by 1 / output scale before it divides by the sum."""
_MOST_ENTRIES = 256
"""Differences of two int8."""
_NOTHING = 1e-9
"""A share of a row that no sum notices."""


def _exponentials(op: kit.AnyOperator) -> NDArray[np.float32]:
    """exp(-i * scale) for the differences i to the largest that still count."""
    values = np.exp(-np.arange(_MOST_ENTRIES) * op.x.q.scale)
    counted: NDArray[np.float32] = values[values > _NOTHING].astype(np.float32)
    return counted


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    y, table = op.y, _exponentials(op)
    rows = inputs[0].reshape(-1, y.shape[-1]).astype(np.int64)
    below = rows.max(axis=1, keepdims=True) - rows
    padded = np.append(table, np.zeros(256 - len(table), np.float32))
    exps = padded[below]
    total = np.add.accumulate(exps, axis=1, dtype=np.float32)[:, -1:]
    share = np.float32(1) / (total * np.float32(y.q.scale))
    stored = np.clip(nearest(exps * share) + y.q.zero_point, -128, 127)
    return (stored.astype(np.int8).reshape(y.shape),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    elementwise.require_types(op, kit.DType.INT8)
    x, y, table = op.x, op.y, _exponentials(op)
    if not x.shape:
        raise kit.UnsupportedError(f"softmax {op.name!r}: the input is a scalar")
    params = kit.Struct(
        "thimble_softmax_once_params",
        {
            "rows": x.elements // x.shape[-1],
            "columns": x.shape[-1],
            "entries": len(table),
            "exponentials": kit.Packed("exponentials"),
            "scale": float(y.q.scale),
            "zero_point": y.q.zero_point,
        },
    )
    call = kit.Call(
        "thimble_softmax_once_s8",
        {"params": params, "input": kit.Input(0), "output": kit.Output(0)},
    )
    return kit.Kernel(
        (call,),
        row_extents(
            "params.rows",
            "params.columns",
            lambda t: {"exponentials": 4 * t.call["params.entries"]},
        ),
        constants=(kit.constant("exponentials", table, "exp(-i * scale)", _MOST_ENTRIES),),
        find_overlaps=lambda: elementwise.overlaps_same_shape(op, core),
    )


def _read_onnx(node: kit.OnnxNode) -> None:
    """Softmax along the innermost dimension in memory."""
    rank = len(node.shape(0))
    default = 1 if node.opset < 13 else -1
    (axis,) = resolve_axes(node, (int(node.attribute("axis", default)),), rank)
    if node.opset < 13 and any(size != 1 for size in node.shape(0)[axis + 1 :]):
        if int(np.prod(node.shape(0)[:axis], dtype=np.int64)) * node.shape(0)[rank - 1] != int(
            np.prod(node.shape(0), dtype=np.int64)
        ):
            raise node.unsupported(
                f"over dimensions {axis}..{rank - 1} at once", "export with opset 13 or newer"
            )
        axis = rank - 1
    order = (*(other for other in node.axes(0) if other != axis), axis)
    q = node.output_quantisation(NATURAL)
    if node.attribute("opset", None) is not None and 1 / q.scale > _LEAST * node.shape(0)[axis]:
        raise node.unsupported(
            f"QLinearSoftmax with an output scale of {q.scale:g}, at which ONNX Runtime's kernel "
            "overruns float32",
            "give it the output scale 1/256",
        )
    x = node.operand(0, order)
    if node.in_float:
        node.emit("softmax", Softmax(), [x], q, order)
    else:
        node.emit("softmax_once", kit.Attributes(), [x], q, order)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = (*elementwise.sample_shape(rng, 3, 6), int(rng.integers(1, 40)))
    q = kit.Quantisation((kit.sample_scale(rng, -10, 2),), (int(rng.integers(-128, 128)),))
    out = NATURAL
    if rng.random() < 0.7:
        out = elementwise.sample_quantisation(rng, scale=float(2.0 ** rng.uniform(-10, -6)))
    x = kit.Tensor("x", shape, kit.DType.INT8, q)
    return kit.sample("softmax_once", kit.Attributes(), x, q=out, name="softmax")


SPEC = kit.Form(
    kind="softmax_once",
    attributes=kit.Attributes,
    infer=elementwise.infer_unary,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=kit.leading_axes,
    onnx=kit.OnnxBinding(("Softmax",), _read_onnx),
    limits="int8, one dimension, any output scale; computed in float32",
)
