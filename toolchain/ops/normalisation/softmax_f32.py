"""Softmax over the last dimension in float32. TFLite SOFTMAX, `reference_ops::Softmax`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic import float_math
from toolchain.ops.elementwise.common import overlaps_same_shape
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.normalisation.softmax_s8 import SOFTMAX_S8, Softmax
from toolchain.ops.readers.float32 import check_float_node, float32_sample


def _reference(op: kit.Operator[Softmax], inputs: kit.Inputs) -> kit.Arrays:
    shape = op.y.shape
    rows = inputs[0].reshape(-1, shape[-1]).astype(np.float32)
    lowered = (rows - rows.max(axis=1, keepdims=True)) * np.float32(op.attributes.beta)
    exponentials = float_math.exp(lowered)
    total = np.zeros(len(rows), np.float32)
    for column in exponentials.T:
        total = total + column
    return ((exponentials / total[:, None]).reshape(shape),)


def _select(op: kit.Operator[Softmax], core: kit.Core) -> kit.Kernel:
    x = op.x
    if not x.shape:
        raise op.refused("the input is a scalar")
    call = kit.Call(
        "thimble_softmax_f32",
        {
            "input": kit.Input(0),
            "output": kit.Output(0),
            "rows": x.elements // x.shape[-1],
            "columns": x.shape[-1],
            "beta": float(op.attributes.beta),
        },
    )
    return kit.Kernel(
        (call,),
        row_extents("rows", "columns"),
        find_overlaps=lambda: overlaps_same_shape(op, core),
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    check_float_node(node)
    return kit.ReadOp(Softmax(float(node.options.beta)), (0,))


def _write(op: kit.Operator[Softmax]) -> kit.WrittenOp:
    return kit.WrittenOp("SOFTMAX", "SoftmaxOptions", {"beta": op.attributes.beta}, version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    graph = float32_sample(SOFTMAX_S8.sample, "softmax")(rng)
    op, attributes = graph.ops[0], kit.operator_of(graph.ops[0], graph).attributes
    return graph.with_ops([replace(op, attributes=Softmax(attributes.beta))])


SOFTMAX_F32 = replace(
    SOFTMAX_S8,
    kind="softmax",
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("SOFTMAX",), _read, _write),
    onnx=None,
    reductions=kit.no_reductions,
    dtype=kit.DType.FLOAT32,
    types=frozenset(),
    limits="float32, last dimension",
)
