"""Logarithm of the softmax over the last dimension. TFLite LOG_SOFTMAX, ONNX LogSoftmax.

int8 is in `log_softmax_s8`. float32 is x - largest - log(sum of exp(x - largest)), summed in order,
as TFLite's `reference_ops::LogSoftmax` and ONNX Runtime have it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.elementwise.common import overlaps_same_shape
from toolchain.ops.normalisation.log_softmax_s8 import LOG_SOFTMAX_S8
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.readers.float32 import check_float_node, float32_sample
from toolchain.ops.readers.onnx import resolve_axes


def _reference(op: kit.AnyOperator, inputs: kit.Inputs) -> kit.Arrays:
    shape = op.y.shape
    rows = inputs[0].reshape(-1, shape[-1]).astype(np.float32)
    lowered = rows - rows.max(axis=1, keepdims=True)
    total = np.zeros(len(rows), np.float32)
    for column in float_math.exp(lowered).T:
        total = total + column
    return ((lowered - float_math.log(total)[:, None]).reshape(shape),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    x = op.x
    if not x.shape:
        raise op.refused("the input is a scalar")
    columns = x.shape[-1]
    rows = x.elements // columns
    arguments: dict[str, kit.Argument] = {
        "input": kit.Input(0),
        "output": kit.Output(0),
        "rows": rows,
        "columns": columns,
    }
    return kit.Kernel(
        (kit.Call("thimble_log_softmax_f32", arguments),),
        row_extents("rows", "columns"),
        find_overlaps=lambda: overlaps_same_shape(op, core),
        find_terms=lambda: {"call": 1.0, "row": rows, "element": x.elements},
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_float_node(node)
    return kit.ReadOp(Softmax(), (0,))


def _read_onnx(node: kit.OnnxNode) -> None:
    """Along one dimension; what older opsets do over several is written otherwise before."""
    if not node.in_float:
        raise node.left_in_float("it has no int8 form of any output scale")
    rank = len(node.shape(0))
    default = 1 if node.opset < 13 else -1
    (axis,) = resolve_axes(node, (int(node.attribute("axis", default)),), rank)
    if node.opset < 13:
        axis = rank - 1  # the dimensions between are 1, and so is a softmax over them
    order = (*(other for other in node.axes(0) if other != axis), axis)
    node.emit("log_softmax", Softmax(), [node.operand(0, order)], None, order)


_WRITTEN = kit.WrittenOp("LOG_SOFTMAX", "LogSoftmaxOptions", version=2)
_LOG_SOFTMAX_F32 = replace(
    LOG_SOFTMAX_S8,
    reference=_reference,
    select=_select,
    sample=float32_sample(LOG_SOFTMAX_S8.sample, "log_softmax"),
    tflite=kit.TfliteBinding(("LOG_SOFTMAX",), _read, lambda op: _WRITTEN),
    dtype=kit.DType.FLOAT32,
    limits="float32, last dimension",
)
_READ_FROM_ONNX = replace(LOG_SOFTMAX_S8, onnx=kit.OnnxBinding(("LogSoftmax",), _read_onnx))
SPEC = kit.OpSpec((_READ_FROM_ONNX, _LOG_SOFTMAX_F32))
