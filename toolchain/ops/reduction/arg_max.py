"""Index of the largest or smallest element along an axis; of equal elements, the first.

TFLite ARG_MAX and ARG_MIN: int8, int32 or float32 to int32 or int64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.readers.onnx import resolve_axes

_TYPES = (kit.DType.INT8, kit.DType.FLOAT32, kit.DType.INT32)


@dataclass(frozen=True)
class ArgMax(kit.Attributes):
    """With `smallest` the index of the least element instead of the largest."""

    axis: int
    smallest: bool = False
    output: kit.DType = kit.DType.INT32


def _axis(op: kit.Operator[ArgMax]) -> int:
    return kit.resolve_axis(op.attributes.axis, len(op.x.shape))


def _infer(op: kit.Operator[ArgMax]) -> kit.TensorTypes:
    x, axis, output = op.x, _axis(op), op.attributes.output
    if x.dtype not in _TYPES:
        raise ValueError(f"the index of an extreme of {x.dtype.value}")
    if output not in (kit.DType.INT32, kit.DType.INT64):
        raise ValueError(f"indices are int32 or int64, not {output.value}")
    return (kit.TensorType((*x.shape[:axis], *x.shape[axis + 1 :]), output),)


def _reference(op: kit.Operator[ArgMax], inputs: kit.Inputs) -> kit.Arrays:
    attributes, axis = op.attributes, _axis(op)
    better = np.less if attributes.smallest else np.greater
    lines = np.moveaxis(inputs[0], axis, 0)
    best, places = lines[0], np.zeros(lines.shape[1:], attributes.output.numpy)
    for index, value in enumerate(lines):
        chosen = better(value, best)  # never NaN
        best, places = np.where(chosen, value, best), np.where(chosen, index, places)
    return (places.astype(attributes.output.numpy),)


def _select(op: kit.Operator[ArgMax], core: kit.Core) -> kit.Kernel:
    x, axis = op.x, _axis(op)
    params = kit.Struct(
        "thimble_arg_max_params",
        {
            "outer": math.prod(x.shape[:axis]),
            "count": x.shape[axis],
            "inner": math.prod(x.shape[axis + 1 :]),
            "flip": -1 if op.attributes.smallest else 0,
            "index_bytes": op.attributes.output.size_bytes,
        },
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "input": kit.Input(0),
        "output": kit.Output(0),
    }
    call = kit.Call(f"thimble_arg_max_{kit.SUFFIXES[x.dtype]}", arguments)
    return kit.Kernel((call,), _extents)


def _extents(touched: kit.Touched) -> kit.Extents:
    call, source = touched.call, touched.inputs[0]
    assert source is not None
    lines = call["params.outer"] * call["params.inner"]
    return kit.Extents(
        {0: kit.whole(lines * call["params.count"], source.element_bytes)},
        {0: kit.whole(lines, call["params.index_bytes"])},
    )


def _axes(op: kit.Operator[ArgMax]) -> tuple[kit.Axis, ...]:
    """Every axis but the one that is searched."""
    axis = _axis(op)
    through = [other for other in range(len(op.x.shape)) if other != axis]
    return tuple(kit.Axis(place, (kit.Reach(other),)) for place, other in enumerate(through))


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    smallest = node.builtin == "ARG_MIN"
    named = getattr(node.options, "outputType", None)
    if named is not None and named != node.outputs[0].dtype.name:
        raise node.unsupported(
            f"its options give the result type {named}, and its tensor is "
            f"{node.outputs[0].dtype.value}",
            "the file was edited or is damaged: convert the model with the output_type that is "
            "wanted of tf.math.argmax",
        )
    return kit.ReadOp(ArgMax(node.integers(1)[0], smallest, node.outputs[0].dtype), (0,))


def _write(op: kit.Operator[ArgMax]) -> kit.WrittenOp:
    attributes = op.attributes
    name = "Min" if attributes.smallest else "Max"
    return kit.WrittenOp(
        f"ARG_{name.upper()}",
        f"Arg{name}Options",
        {"outputType": attributes.output.name},
        (kit.int32_constant("axis", np.array([attributes.axis])),),
        version=2,
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank)
    axis = int(rng.integers(rank))
    output = kit.DType.INT64 if rng.random() < 0.4 else kit.DType.INT32
    dtype = _TYPES[int(rng.choice([0, 0, 1, 2]))]
    x = kit.Tensor(
        "x", shape, dtype, kit.sample_quantisation(rng) if dtype is kit.DType.INT8 else None
    )
    written = axis - rank if rng.random() < 0.5 else axis
    attributes = ArgMax(written, bool(rng.random() < 0.4), output)
    return kit.sample("arg_max", attributes, x, name="arg")


def _read_onnx(node: kit.OnnxNode) -> None:
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
    attributes = ArgMax(order.index(axis), node.operator == "ArgMin", kit.DType.INT64)
    if len(axes) != len(logical):
        raise ValueError(f"an output of shape {list(logical)}")
    node.emit("arg_max", attributes, [node.operand(0, order)], None, axes, stored, kit.DType.INT64)


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="arg_max",
    attributes=ArgMax,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=_axes,
    tflite=kit.TfliteBinding(("ARG_MAX", "ARG_MIN"), _read, _write),
    types=frozenset({*_TYPES, kit.DType.INT64}),
    onnx=kit.OnnxBinding(("ArgMax", "ArgMin"), _read_onnx),
    limits="int8, int32 or float32 data, constant axis",
)
