"""Softmax over the last dimension in float32. TFLite SOFTMAX, `reference_ops::Softmax`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op
from toolchain.ops import extents
from toolchain.ops.arithmetic import float_math
from toolchain.ops.normalisation import softmax
from toolchain.ops.normalisation.softmax import Softmax
from toolchain.ops.readers.floats import FLOAT, check_float_node, float_sample, literal
from toolchain.ops.spec import (
    Array,
    Lowering,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
    no_reductions,
)


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


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    x = graph.input(op, 0)
    if not x.shape:
        raise UnsupportedError(f"{op.kind} {op.name!r}: the input is a scalar")
    return Lowering(
        functions=("thimble_softmax_f32",),
        fields={
            "rows": x.elements // x.shape[-1],
            "columns": x.shape[-1],
            "beta": literal(_attributes(op).beta),
        },
    )


def _read(node: TfliteNode) -> ReadOp:
    check_float_node(node)
    return ReadOp(Softmax(float(node.options.beta)), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return WrittenOp("SOFTMAX", "SoftmaxOptions", {"beta": _attributes(op).beta}, version=2)


def _sample(rng: np.random.Generator) -> Graph:
    graph = float_sample(softmax.SPEC.sample, "softmax_f32")(rng)
    (op,) = graph.ops
    return graph.with_ops([replace(op, attributes=Softmax(_attributes(op).beta))])


SPEC = replace(
    softmax.SPEC,
    kind="softmax_f32",
    reference=_reference,
    lower=_lower,
    extents=extents.softmax(0, "f32"),
    sample=_sample,
    tflite=TfliteBinding(("SOFTMAX",), _read, _write),
    onnx=None,
    reductions=no_reductions,
    dtypes=FLOAT,
    limits="float32, last dimension",
)
