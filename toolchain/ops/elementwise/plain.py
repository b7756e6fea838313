"""Functions of two operands that TFLite computes in float32 and on integers, never quantised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.binary_s32 import int32_form, int64_form
from toolchain.ops.elementwise.common import infer_broadcast, infer_of_one_shape, sample_binary
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import Kernel
from toolchain.ops.spec import Array, OnnxBinding, ReadOp, TfliteBinding, TfliteNode, WrittenOp

Shape = tuple[int, ...]


def _nothing(one: Shape, two: Shape) -> Attributes:
    return Attributes()


def plain_spec(
    kind: str,
    options: str,
    *types: DType,
    broadcasts: bool = True,
    attributes_of: Callable[[Shape, Shape], Attributes] = _nothing,
    onnx: OnnxBinding | None = None,
) -> OpSpec:
    """A kind that `binary_f32.FUNCTIONS` and `binary_s32.FUNCTIONS` name, of `types` of these.

    `options`: the type of its options in TFLite's schema. `broadcasts`: whether LiteRT takes
    operands of different shapes. `attributes_of`: its attributes, from its operands' shapes.
    """

    def refuse(op: Op, graph: Graph) -> UnsupportedError:
        return UnsupportedError(f"{kind} {op.name!r} is of {graph.input(op, 0).dtype.value}")

    def reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
        raise refuse(op, graph)

    def select(op: Op, graph: Graph, core: Core) -> Kernel:
        raise refuse(op, graph)

    def attributes(node: TfliteNode) -> Attributes:
        one, two = node.inputs
        assert one is not None and two is not None
        return attributes_of(one.shape, two.shape)

    def read(node: TfliteNode) -> ReadOp:
        return ReadOp(attributes(node), (0, 1))

    def write(op: Op, graph: Graph) -> WrittenOp:
        return WrittenOp(kind.upper(), options)

    def sample(rng: np.random.Generator) -> Graph:
        while True:
            graph = sample_binary(rng, Op(kind, kind, ("a", "b"), ("y",)), 1.0)
            shapes = graph.tensors["a"].shape, graph.tensors["b"].shape
            if broadcasts or shapes[0] == shapes[1]:
                op = replace(graph.ops[0], attributes=attributes_of(*shapes))
                return replace(graph, ops=(op,))

    base = OldForm(
        kind=kind,
        attributes=type(attributes_of((), ())),
        infer=infer_broadcast if broadcasts else infer_of_one_shape,
        reference=reference,
        select=select,
        sample=sample,
        axes=elementwise_axes,
        tflite=TfliteBinding((kind.upper(),), read, write),
    )
    made = {DType.FLOAT32: float_form, DType.INT32: int32_form, DType.INT64: int64_form}
    forms = [replace(made[dtype](base, attributes), onnx=onnx) for dtype in types]
    if not broadcasts:
        limits = [f"{dtype.value}, of one shape" for dtype in types]
        forms = [replace(form, limits=line) for form, line in zip(forms, limits, strict=True)]
    return OpSpec(tuple(forms))
