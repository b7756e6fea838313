"""Softmax over the last dimension in float32. TFLite SOFTMAX, `reference_ops::Softmax`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op
from toolchain.ops.arithmetic import float_math
from toolchain.ops.elementwise.common import overlaps_same_shape
from toolchain.ops.forms import no_reductions
from toolchain.ops.kernel import (
    Call,
    Input,
    Kernel,
    Output,
)
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.normalisation.softmax_s8 import SOFTMAX_S8, Softmax
from toolchain.ops.readers.float32 import check_float_node, float32_sample
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode, WrittenOp


def _attributes(op: Op) -> Softmax:
    assert isinstance(op.attributes, Softmax)
    return op.attributes


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    shape = graph.output(op).shape
    rows = inputs[0].reshape(-1, shape[-1]).astype(np.float32)
    lowered = (rows - rows.max(axis=1, keepdims=True)) * np.float32(_attributes(op).beta)
    exponentials = float_math.exp(lowered)
    total = np.zeros(len(rows), np.float32)
    for column in exponentials.T:
        total = total + column
    return ((exponentials / total[:, None]).reshape(shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x = graph.input(op, 0)
    if not x.shape:
        raise UnsupportedError(f"{op.kind} {op.name!r}: the input is a scalar")
    call = Call(
        "thimble_softmax_f32",
        {
            "input": Input(0),
            "output": Output(0),
            "rows": x.elements // x.shape[-1],
            "columns": x.shape[-1],
            "beta": float(_attributes(op).beta),
        },
    )
    return Kernel(
        (call,),
        row_extents("rows", "columns"),
        find_overlaps=lambda: overlaps_same_shape(op, graph, core),
    )


def _read(node: TfliteNode) -> ReadOp:
    check_float_node(node)
    return ReadOp(Softmax(float(node.options.beta)), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return WrittenOp("SOFTMAX", "SoftmaxOptions", {"beta": _attributes(op).beta}, version=2)


def _sample(rng: np.random.Generator) -> Graph:
    graph = float32_sample(SOFTMAX_S8.sample, "softmax")(rng)
    (op,) = graph.ops
    return graph.with_ops([replace(op, attributes=Softmax(_attributes(op).beta))])


SOFTMAX_F32 = replace(
    SOFTMAX_S8,
    kind="softmax",
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("SOFTMAX",), _read, _write),
    onnx=None,
    reductions=no_reductions,
    dtype=DType.FLOAT32,
    types=frozenset(),
    limits="float32, last dimension",
)
