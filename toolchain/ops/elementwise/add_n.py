"""Sums of several tensors of one shape. TFLite ADD_N; int8 as tflite-micro has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import infer_unary, sample_quantisation, sample_shape
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Touched,
)
from toolchain.ops.operator import operator_of
from toolchain.ops.reduction.fine_sums import parameters, settled
from toolchain.ops.spec import (
    STORED,
    Array,
    Quantised,
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
    x = Tensor("x0", sample_shape(rng), DType.FLOAT32)
    tensors = [replace(x, name=f"x{index}") for index in range(int(rng.integers(2, 5)))]
    names = tuple(tensor.name for tensor in tensors)
    op = Op("add_n", "add_n", names, ("y",))
    return Graph.build("sample", [*tensors, replace(x, name="y")], [op], names, ["y"])


def _plain(dtype: DType) -> Callable[[np.random.Generator], Graph]:
    def sample(rng: np.random.Generator) -> Graph:
        graph = _sample(rng)
        tensors = [replace(tensor, dtype=dtype) for tensor in graph.tensors.values()]
        return Graph.build("sample", tensors, graph.ops, graph.inputs, graph.outputs)

    return sample


_PLAIN = OldForm(
    kind="add_n",
    attributes=Attributes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=TfliteBinding(("ADD_N",), _read, _write),
    quantised=STORED,
    limits="operands of one shape",
)


def _plain_form(dtype: DType) -> OldForm:
    limits = f"{dtype.value}, operands of one shape"
    return replace(_PLAIN, dtype=dtype, sample=_plain(dtype), limits=limits)


def _reference_s8(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    zero_point = graph.input(op, 0).q.zero_point
    total = sum(values.astype(np.int64) - zero_point for values in inputs)
    return (settled(operator_of(op, graph), np.asarray(total)),)


def _infer_s8(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    first = graph.input(op, 0)
    for other in graph.input_tensors(op):
        if other is None or other.quantisation != first.quantisation:
            raise ValueError(f"{other} is added to {first}, which is quantised otherwise")
    return _infer(op, graph)


def _select_s8(op: Op, graph: Graph, core: Core) -> Kernel:
    """One pass over all operands."""
    given = parameters(operator_of(op, graph))
    count = len(op.inputs)
    arguments: dict[str, Argument] = {
        **{f"operand_{number}": Input(number) for number in range(count)},
        "output": Output(0),
        "size": graph.input(op, 0).elements,
        "start": -given["zero_point"] * (count + 1),
        **{name: given[name] for name in ("multiplier", "shift", "output_offset")},
    }
    call = Call("thimble_fine_sum_s8", arguments, template="sum_s8", defined=True)
    overlaps = tuple(SafeOverlap(number) for number in range(count))
    return Kernel((call,), _extents_s8, find_overlaps=lambda: overlaps)


def _extents_s8(touched: Touched) -> Extents:
    size = whole(touched.call["size"])
    operands = [value for value in touched.call.arguments.values() if isinstance(value, Input)]
    return Extents({operand.index: size for operand in operands}, {0: size})


def _sample_s8(rng: np.random.Generator) -> Graph:
    graph = _sample(rng)
    q = sample_quantisation(rng)
    scale = float(np.float32(q.scale * 2.0 ** rng.uniform(-1, 3)))
    output = sample_quantisation(rng, scale=scale)
    tensors = [
        replace(tensor, dtype=DType.INT8, quantisation=output if tensor.name == "y" else q)
        for tensor in graph.tensors.values()
    ]
    return Graph.build("sample", tensors, graph.ops, graph.inputs, graph.outputs)


_INT8 = replace(
    _PLAIN,
    infer=_infer_s8,
    reference=_reference_s8,
    select=_select_s8,
    sample=_sample_s8,
    dtype=DType.INT8,
    quantised=Quantised(),
    limits="int8 as tflite-micro has it, operands of one shape and scale",
)
SPEC = OpSpec((*(_plain_form(dtype) for dtype in _SUFFIXES), _INT8))
