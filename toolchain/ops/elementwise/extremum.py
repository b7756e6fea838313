"""Minimum and maximum of int8 or int16. TFLite MINIMUM and MAXIMUM compare stored values.

Source: `maximum_minimum.cc`, `MaximumMinimumBroadcastSlow`. Operands and output should share one
quantisation, because no scale is used; TFLite does not check this, nor does Thimble.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Line,
    check_node,
    infer_broadcast,
    require_types,
    sample_binary,
    scalar_constant,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel, unary_kernel
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import Kernel
from toolchain.ops.readers.int16 import as_int16
from toolchain.ops.readers.onnx_elementwise import read_extremum, read_plain
from toolchain.ops.spec import (
    STORED,
    Array,
    OnnxBinding,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


def extremum_spec(kind: str, choose: Callable[[Array, Array], Array], dtype: DType) -> OldForm:
    """The spec of `minimum` or `maximum`, of int8 or int16. `choose` is NumPy's function."""
    wide = dtype is DType.INT16

    def reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (choose(inputs[0], inputs[1]),)

    def select(op: Op, graph: Graph, core: Core) -> Kernel:
        require_types(op, graph, dtype)
        scalar = None if wide else scalar_constant(op, graph)
        if scalar is not None:
            operand, value = scalar
            limits = {"high": value} if kind == "minimum" else {"low": value}
            bound = np.array(value, dtype=np.int64)
            return unary_kernel(
                op,
                graph,
                lambda stored: choose(stored, bound).astype(np.int64),
                Line(1.0, 0.0, **limits),
                operand,
            )
        return broadcast_kernel(op, graph, core, f"thimble_{kind}_{'s16' if wide else 's8'}")

    def read(node: TfliteNode) -> ReadOp:
        check_node(node, dtype)
        return ReadOp(Attributes(), (0, 1))

    def write(op: Op, graph: Graph) -> WrittenOp:
        return WrittenOp(kind.upper(), "MaximumMinimumOptions", version=3 if wide else 2)

    def sample(rng: np.random.Generator) -> Graph:
        graph = sample_binary(rng, Op(kind, kind, ("a", "b"), ("y",)), 1.0)
        graph = as_int16(graph) if wide else graph
        q = graph.tensors["y"].q
        tensors = [replace(t, quantisation=q) for t in graph.tensors.values()]
        return Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)

    return OldForm(
        quantised=STORED,
        kind=kind,
        attributes=Attributes,
        infer=infer_broadcast,
        reference=reference,
        select=select,
        sample=sample,
        axes=elementwise_axes,
        tflite=TfliteBinding((kind.upper(),), read, write),
        onnx=None
        if wide
        else OnnxBinding((kind[:3].capitalize(),), read_extremum(kind), plain=read_plain(kind)),
        dtype=dtype,
        limits=f"{dtype.value}, any broadcast",
    )
