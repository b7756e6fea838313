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
    infer_broadcast,
    require_types,
    sample_binary,
)
from toolchain.ops.elementwise.functions import BINARY
from toolchain.ops.elementwise.kernels import broadcast_kernel, constant_kernel
from toolchain.ops.elementwise.kinds import binding, plain_forms
from toolchain.ops.readers.int16 import as_int16
from toolchain.ops.readers.onnx_elementwise import read_extremum, read_plain


def _form(
    kind: str,
    choose: Callable[[Any, Any], Any],
    line: Callable[[int, int], Line],
    dtype: kit.DType,
) -> kit.Form[Any]:
    """`minimum` or `maximum`, of int8 or int16. `choose` is NumPy's function; `line` is that of
    one operand and a constant.
    """
    wide = dtype is kit.DType.INT16

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        return (choose(inputs[0], inputs[1]),)

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        require_types(op, dtype)
        of_one = None if wide else constant_kernel(op, choose, line)
        function = f"thimble_{kind}_{'s16' if wide else 's8'}"
        return broadcast_kernel(op, core, function) if of_one is None else of_one

    def sample(rng: np.random.Generator) -> kit.Graph:
        graph = sample_binary(rng, kit.Op(kind, kind, ("a", "b"), ("y",)), 1.0)
        graph = as_int16(graph) if wide else graph
        q = graph.tensors["y"].q
        tensors = [replace(t, quantisation=q) for t in graph.tensors.values()]
        return kit.Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)

    onnx = kit.OnnxBinding((BINARY[kind].onnx,), read_extremum(kind), plain=read_plain(kind))
    return kit.Form(
        quantised=kit.STORED,
        kind=kind,
        attributes=kit.Attributes,
        infer=infer_broadcast,
        reference=reference,
        select=select,
        sample=sample,
        axes=elementwise_axes,
        tflite=binding(kind, 3 if wide else 2, dtype),
        onnx=None if wide else onnx,
        dtype=dtype,
        limits=f"{dtype.value}, any broadcast",
    )


def _spec(
    kind: str, choose: Callable[[Any, Any], Any], line: Callable[[int, int], Line]
) -> kit.OpSpec:
    int8, int16 = (_form(kind, choose, line, t) for t in (kit.DType.INT8, kit.DType.INT16))
    return kit.OpSpec((int8, int16, *plain_forms(int8)))


SPECS = (
    _spec("maximum", np.maximum, lambda operand, value: Line(1.0, 0.0, low=value)),
    _spec("minimum", np.minimum, lambda operand, value: Line(1.0, 0.0, high=value)),
)
