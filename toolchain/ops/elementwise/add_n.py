"""Sums of several tensors of one shape. TFLite ADD_N, float32 and int32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import infer_unary, sample_shape
from toolchain.ops.extents import Extents, whole
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Touched,
)
from toolchain.ops.spec import (
    STORED,
    Array,
    OpSpec,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_SUFFIXES = MappingProxyType({DType.FLOAT32: "f32", DType.INT32: "s32"})
_FEWEST = 2


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    first = graph.input(op, 0)
    for other in graph.input_tensors(op):
        if other is None or (other.shape, other.dtype) != (first.shape, first.dtype):
            raise ValueError(f"{other} is added to {first}")
    if len(op.inputs) < _FEWEST:
        raise ValueError("it has one operand alone")
    return infer_unary(op, graph)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    with np.errstate(all="ignore"):
        return (reduce(np.add, inputs),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    """One call for each operand but the first, which adds it to the sum so far."""
    x = graph.input(op, 0)

    def added(number: int) -> Call:
        arguments: dict[str, Argument] = {
            "first": Input(0) if number == 1 else Output(0),
            "second": Input(number),
            "output": Output(0),
            "size": x.elements,
        }
        return Call(f"thimble_add_values_{_SUFFIXES[x.dtype]}", arguments)

    calls = tuple(added(number) for number in range(1, len(op.inputs)))
    overlaps = (SafeOverlap(0), *((SafeOverlap(1),) if len(calls) == 1 else ()))
    return Kernel(calls, _extents, find_overlaps=lambda: overlaps)


def _extents(touched: Touched) -> Extents:
    size = whole(touched.calls[0]["size"], touched.outputs[0].element_bytes)
    return Extents(dict.fromkeys(range(len(touched.calls) + 1), size), {0: size})


def _read(node: TfliteNode) -> ReadOp:
    return ReadOp(Attributes(), tuple(range(len(node.inputs))))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return WrittenOp("ADD_N", "AddNOptions")


def _sample(rng: np.random.Generator) -> Graph:
    dtype = list(_SUFFIXES)[int(rng.integers(2))]
    x = Tensor("x0", sample_shape(rng), dtype)
    tensors = [replace(x, name=f"x{index}") for index in range(int(rng.integers(2, 5)))]
    names = tuple(tensor.name for tensor in tensors)
    op = Op("add_n", "add_n", names, ("y",))
    return Graph.build("sample", [*tensors, replace(x, name="y")], [op], names, ["y"])


SPEC = OpSpec(
    kind="add_n",
    attributes=Attributes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=TfliteBinding(("ADD_N",), _read, _write),
    dtypes=frozenset(_SUFFIXES),
    quantised=STORED,
    limits="float32 or int32, operands of one shape",
)
