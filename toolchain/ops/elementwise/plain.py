"""Functions of two operands that TFLite computes in float32 and on integers, never quantised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from toolchain.ir import DType
from toolchain.ops import kit
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.binary_s32 import int32_form, int64_form
from toolchain.ops.elementwise.common import infer_broadcast, infer_of_one_shape, sample_binary

Shape = tuple[int, ...]


def _nothing(one: Shape, two: Shape) -> kit.Attributes:
    return kit.Attributes()


def plain_spec(
    kind: str,
    options: str,
    *types: DType,
    broadcasts: bool = True,
    attributes_of: Callable[[Shape, Shape], kit.Attributes] = _nothing,
    onnx: kit.OnnxBinding | None = None,
) -> kit.OpSpec:
    """A kind that `binary_f32.FUNCTIONS` and `binary_s32.FUNCTIONS` name, of `types` of these.

    `options`: the type of its options in TFLite's schema. `broadcasts`: whether LiteRT takes
    operands of different shapes. `attributes_of`: its attributes, from its operands' shapes.
    """

    def refuse(op: kit.AnyOperator) -> kit.UnsupportedError:
        return kit.UnsupportedError(f"{kind} {op.name!r} is of {op.x.dtype.value}")

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        raise refuse(op)

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        raise refuse(op)

    def attributes(node: kit.TfliteNode) -> kit.Attributes:
        one, two = node.inputs
        assert one is not None and two is not None
        return attributes_of(one.shape, two.shape)

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        return kit.ReadOp(attributes(node), (0, 1))

    def write(op: kit.AnyOperator) -> kit.WrittenOp:
        return kit.WrittenOp(kind.upper(), options)

    def sample(rng: np.random.Generator) -> kit.Graph:
        while True:
            graph = sample_binary(rng, kit.Op(kind, kind, ("a", "b"), ("y",)), 1.0)
            shapes = graph.tensors["a"].shape, graph.tensors["b"].shape
            if broadcasts or shapes[0] == shapes[1]:
                op = replace(graph.ops[0], attributes=attributes_of(*shapes))
                return replace(graph, ops=(op,))

    base = kit.Form(
        kind=kind,
        attributes=type(attributes_of((), ())),
        infer=infer_broadcast if broadcasts else infer_of_one_shape,
        reference=reference,
        select=select,
        sample=sample,
        axes=elementwise_axes,
        tflite=kit.TfliteBinding((kind.upper(),), read, write),
    )
    made = {kit.DType.FLOAT32: float_form, kit.DType.INT32: int32_form, kit.DType.INT64: int64_form}
    forms = [replace(made[dtype](base, attributes), onnx=onnx) for dtype in types]
    if not broadcasts:
        limits = [f"{dtype.value}, of one shape" for dtype in types]
        forms = [replace(form, limits=line) for form, line in zip(forms, limits, strict=True)]
    return kit.OpSpec(tuple(forms))
