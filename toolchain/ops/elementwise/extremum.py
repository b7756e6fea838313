"""Minimum and maximum of int8 or int16. TFLite MINIMUM and MAXIMUM compare stored values.

Source: `maximum_minimum.cc`, `MaximumMinimumBroadcastSlow`. Operands and output should share one
quantisation, because no scale is used; TFLite does not check this, nor does Thimble.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toolchain.ops import kit
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
from toolchain.ops.readers.int16 import as_int16
from toolchain.ops.readers.onnx_elementwise import read_extremum, read_plain


def extremum_spec(
    kind: str, choose: Callable[[kit.Array, kit.Array], kit.Array], dtype: kit.DType
) -> kit.Form[Any]:
    """The spec of `minimum` or `maximum`, of int8 or int16. `choose` is NumPy's function."""
    wide = dtype is kit.DType.INT16

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        return (choose(inputs[0], inputs[1]),)

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        require_types(op, dtype)
        scalar = None if wide else scalar_constant(op)
        if scalar is not None:
            operand, value = scalar
            limits = {"high": value} if kind == "minimum" else {"low": value}
            bound = np.array(value, dtype=np.int64)
            return unary_kernel(
                op,
                lambda stored: choose(stored, bound).astype(np.int64),
                Line(1.0, 0.0, **limits),
                operand,
            )
        return broadcast_kernel(op, core, f"thimble_{kind}_{'s16' if wide else 's8'}")

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        check_node(node, dtype)
        return kit.ReadOp(kit.Attributes(), (0, 1))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        return kit.WrittenOp(kind.upper(), "MaximumMinimumOptions", version=3 if wide else 2)

    def sample(rng: np.random.Generator) -> kit.Graph:
        graph = sample_binary(rng, kit.Op(kind, kind, ("a", "b"), ("y",)), 1.0)
        graph = as_int16(graph) if wide else graph
        q = graph.tensors["y"].q
        tensors = [replace(t, quantisation=q) for t in graph.tensors.values()]
        return kit.Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)

    return kit.Form(
        quantised=kit.STORED,
        kind=kind,
        attributes=kit.Attributes,
        infer=infer_broadcast,
        reference=reference,
        select=select,
        sample=sample,
        axes=elementwise_axes,
        tflite=kit.TfliteBinding((kind.upper(),), read, write),
        onnx=None
        if wide
        else kit.OnnxBinding((kind[:3].capitalize(),), read_extremum(kind), plain=read_plain(kind)),
        dtype=dtype,
        limits=f"{dtype.value}, any broadcast",
    )
