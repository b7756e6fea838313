"""Index of the largest or smallest element along an axis; of equal elements, the first.

TFLite ARG_MAX and ARG_MIN: int8, int32 or float32 to int32 or int64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    Struct,
    Touched,
)
from toolchain.ops.movement.copies import (
    int32_constant,
    integers,
    resolve_axis,
    sample_quantisation,
    sample_shape,
)
from toolchain.ops.readers.onnx import resolve_axes
from toolchain.ops.spec import (
    STORED,
    Array,
    Axis,
    OnnxBinding,
    OnnxNode,
    Reach,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_SUFFIXES = MappingProxyType({DType.INT8: "s8", DType.FLOAT32: "f32", DType.INT32: "s32"})


@dataclass(frozen=True)
class ArgMax(Attributes):
    """With `smallest` the index of the least element instead of the largest."""

    axis: int
    smallest: bool = False
    output: DType = DType.INT32


def _attributes(op: Op) -> ArgMax:
    assert isinstance(op.attributes, ArgMax)
    return op.attributes


def _axis(op: Op, graph: Graph) -> int:
    return resolve_axis(_attributes(op).axis, len(graph.input(op, 0).shape))


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, axis, output = graph.input(op, 0), _axis(op, graph), _attributes(op).output
    if x.dtype not in _SUFFIXES:
        raise ValueError(f"the index of an extreme of {x.dtype.value}")
    if output not in (DType.INT32, DType.INT64):
        raise ValueError(f"indices are int32 or int64, not {output.value}")
    return (TensorType((*x.shape[:axis], *x.shape[axis + 1 :]), output),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    attributes, axis = _attributes(op), _axis(op, graph)
    better = np.less if attributes.smallest else np.greater
    lines = np.moveaxis(inputs[0], axis, 0)
    best, found = lines[0], np.zeros(lines.shape[1:], attributes.output.numpy)
    for index, value in enumerate(lines):
        chosen = better(value, best)  # never NaN
        best, found = np.where(chosen, value, best), np.where(chosen, index, found)
    return (found.astype(attributes.output.numpy),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, axis = graph.input(op, 0), _axis(op, graph)
    params = Struct(
        "thimble_arg_max_params",
        {
            "outer": math.prod(x.shape[:axis]),
            "count": x.shape[axis],
            "inner": math.prod(x.shape[axis + 1 :]),
            "flip": -1 if _attributes(op).smallest else 0,
            "index_bytes": _attributes(op).output.size_bytes,
        },
    )
    arguments: dict[str, Argument] = {"params": params, "input": Input(0), "output": Output(0)}
    call = Call(f"thimble_arg_max_{_SUFFIXES[x.dtype]}", arguments)
    return Kernel((call,), _extents)


def _extents(touched: Touched) -> Extents:
    call, source = touched.call, touched.inputs[0]
    assert source is not None
    lines = call["params.outer"] * call["params.inner"]
    return Extents(
        {0: whole(lines * call["params.count"], source.element_bytes)},
        {0: whole(lines, call["params.index_bytes"])},
    )


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Every axis but the one that is searched."""
    axis = _axis(op, graph)
    through = [other for other in range(len(graph.input(op, 0).shape)) if other != axis]
    return tuple(
        Axis(place, (Reach(other),), lambda part: op.attributes)
        for place, other in enumerate(through)
    )


def _read(node: TfliteNode) -> ReadOp:
    smallest = node.builtin == "ARG_MIN"
    named = getattr(node.options, "outputType", None)
    if named is not None and named != node.outputs[0].dtype.name:
        raise node.unsupported(
            f"its options give the result type {named}, and its tensor is "
            f"{node.outputs[0].dtype.value}",
            "convert the model again",
        )
    return ReadOp(ArgMax(integers(node, 1)[0], smallest, node.outputs[0].dtype), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes = _attributes(op)
    name = "Min" if attributes.smallest else "Max"
    return WrittenOp(
        f"ARG_{name.upper()}",
        f"Arg{name}Options",
        {"outputType": attributes.output.name},
        (int32_constant("axis", np.array([attributes.axis])),),
        version=2,
    )


def _sample(rng: np.random.Generator) -> Graph:
    rank = int(rng.integers(1, 5))
    shape = sample_shape(rng, rank)
    axis = int(rng.integers(rank))
    output = DType.INT64 if rng.random() < 0.4 else DType.INT32
    dtype = list(_SUFFIXES)[int(rng.choice([0, 0, 1, 2]))]
    x = Tensor("x", shape, dtype, sample_quantisation(rng) if dtype is DType.INT8 else None)
    y = Tensor("y", (*shape[:axis], *shape[axis + 1 :]), output)
    written = axis - rank if rng.random() < 0.5 else axis
    op = Op("arg_max", "arg", ("x",), ("y",), ArgMax(written, bool(rng.random() < 0.4), output))
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


def _read_onnx(node: OnnxNode) -> None:
    """ArgMax or ArgMin; the first of equal elements."""
    order = node.axes(0)
    (axis,) = resolve_axes(node, (int(node.attribute("axis", 0)),), len(order))
    if node.attribute("select_last_index", 0):
        raise node.unsupported("select_last_index", "export with select_last_index=0")
    kept = [other for other in order if other != axis]
    axes = tuple(sorted(kept).index(other) for other in kept)
    logical = node.output_shape()
    if node.attribute("keepdims", 1):
        axes = order
    stored = tuple(node.shape(0)[other] for other in kept)
    attributes = ArgMax(order.index(axis), node.operator == "ArgMin", DType.INT64)
    if len(axes) != len(logical):
        raise ValueError(f"an output of shape {list(logical)}")
    node.emit("arg_max", attributes, [node.operand(0, order)], None, axes, stored, DType.INT64)


SPEC = OldForm(
    quantised=STORED,
    kind="arg_max",
    attributes=ArgMax,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=_axes,
    tflite=TfliteBinding(("ARG_MAX", "ARG_MIN"), _read, _write),
    types=frozenset({*_SUFFIXES, DType.INT64}),
    onnx=OnnxBinding(("ArgMax", "ArgMin"), _read_onnx),
    limits="int8, int32 or float32 data, constant axis",
)
