"""Minimum and maximum. TFLite MINIMUM and MAXIMUM, int8 or int16: stored values are compared.

Source: `maximum_minimum.cc`, `MaximumMinimumBroadcastSlow`. No scale enters, so operands and
output are meant to share one quantisation; TFLite does not insist, and neither do we.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops import extents
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Line,
    broadcast,
    check_node,
    infer_broadcast,
    lower_unary,
    overlaps_same_shape,
    require_types,
    sample_binary,
    scalar_constant,
)
from toolchain.ops.readers.onnx_elementwise import read_extremum
from toolchain.ops.readers.wide import widened
from toolchain.ops.spec import (
    STORED,
    Array,
    Lowering,
    OnnxBinding,
    OpSpec,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


def extremum_spec(kind: str, choose: Callable[[Array, Array], Array]) -> OpSpec:
    """The spec of `minimum` or `maximum`, of int16 with `_s16`; `choose` is NumPy's function."""
    base, wide = kind.removesuffix("_s16"), kind.endswith("_s16")
    dtype = DType.INT16 if wide else DType.INT8

    def reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (choose(inputs[0], inputs[1]),)

    def lower(op: Op, graph: Graph, core: Core) -> Lowering:
        require_types(op, graph, dtype)
        scalar = None if wide else scalar_constant(op, graph)
        if scalar is not None:
            operand, value = scalar
            limits = {"high": value} if base == "minimum" else {"low": value}
            bound = np.array(value, dtype=np.int64)
            return lower_unary(
                op,
                graph,
                lambda stored: choose(stored, bound).astype(np.int64),
                Line(1.0, 0.0, **limits),
                operand,
            )
        function = f"thimble_{base}_{'s16' if wide else 's8'}"
        shape = broadcast(graph.input(op, 0).shape, graph.input(op, 1).shape)
        return Lowering(functions=(function,), fields={"function": function, "shape": shape})

    def read(node: TfliteNode) -> ReadOp:
        check_node(node, dtype)
        return ReadOp(Attributes(), (0, 1))

    def write(op: Op, graph: Graph) -> WrittenOp:
        return WrittenOp(base.upper(), "MaximumMinimumOptions", version=3 if wide else 2)

    def sample(rng: np.random.Generator) -> Graph:
        graph = sample_binary(rng, Op(base, base, ("a", "b"), ("y",)), 1.0)
        graph = widened(graph) if wide else graph
        q = graph.tensors["y"].q
        tensors = [replace(t, quantisation=q) for t in graph.tensors.values()]
        return Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)

    return OpSpec(
        quantised=STORED,
        kind=kind,
        attributes=Attributes,
        infer=infer_broadcast,
        reference=reference,
        lower=lower,
        extents=extents.binary,
        sample=sample,
        overlaps=overlaps_same_shape,
        axes=elementwise_axes,
        tflite=TfliteBinding((base.upper(),), read, write),
        onnx=None if wide else OnnxBinding((kind[:3].capitalize(),), read_extremum(kind)),
        dtypes=frozenset({dtype}),
        limits=f"{dtype.value}, any broadcast",
    )
