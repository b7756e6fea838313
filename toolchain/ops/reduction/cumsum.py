"""Running sums along an axis. TFLite CUMSUM (`reference_ops::CumSum`); int8 as tflite-micro has."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.elementwise.common import infer_unary, sample_quantisation
from toolchain.ops.readers.onnx import resolve_axes
from toolchain.ops.reduction.fine_sums import parameters, settled

Number = TypeVar("Number", bound=np.generic)
_PLAIN = (kit.DType.FLOAT32, kit.DType.INT32, kit.DType.INT64)


@dataclass(frozen=True)
class CumSum(kit.Attributes):
    """With `exclusive` each sum omits its own element. With `reverse` sums run from the last
    element to the first.
    """

    axis: int
    exclusive: bool = False
    reverse: bool = False


def _sums(attributes: CumSum, x: NDArray[Number]) -> NDArray[Number]:
    axis = kit.resolve_axis(attributes.axis, x.ndim)
    order = np.flip(x, axis) if attributes.reverse else x
    from_zero = np.add(order, 0, dtype=x.dtype)  # a sum begins at 0, which -0 leaves as it is
    sums = np.cumsum(from_zero, axis=axis, dtype=x.dtype)
    if attributes.exclusive:
        before = np.zeros_like(sums)
        rest = [slice(None)] * x.ndim
        kept = [slice(None)] * x.ndim
        rest[axis], kept[axis] = slice(1, None), slice(None, -1)
        before[tuple(rest)] = sums[tuple(kept)]
        sums = before
    return np.flip(sums, axis) if attributes.reverse else sums


def _reference(op: kit.Operator[CumSum], inputs: kit.Inputs) -> kit.Arrays:
    return (_sums(op.attributes, inputs[0]),)


def _select(op: kit.Operator[CumSum], core: kit.Core) -> kit.Kernel:
    attributes, x = op.attributes, op.x
    axis = kit.resolve_axis(attributes.axis, len(x.shape))
    params = kit.Struct(
        "thimble_cumsum_params",
        {
            "outer": math.prod(x.shape[:axis]),
            "count": x.shape[axis],
            "inner": math.prod(x.shape[axis + 1 :]),
            "exclusive": int(attributes.exclusive),
            "reverse": int(attributes.reverse),
        },
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "input": kit.Input(0),
        "output": kit.Output(0),
    }
    if x.dtype is kit.DType.INT8:
        arguments["fine"] = kit.Struct("thimble_fine_sum", dict(parameters(op)))
    call = kit.Call(f"thimble_cumsum_{kit.SUFFIXES[x.dtype]}", arguments)
    # Each place is read once, right before it is written; but not from the first to the last.
    return kit.Kernel((call,), _extents, find_overlaps=lambda: (kit.SafeOverlap(0, exact=True),))


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    size = call["params.outer"] * call["params.count"] * call["params.inner"]
    extent = kit.whole(size, touched.outputs[0].element_bytes)
    return kit.Extents({0: extent}, {0: extent})


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    (axis,) = node.integers(1)
    options = node.options
    return kit.ReadOp(CumSum(axis, bool(options.exclusive), bool(options.reverse)), (0,))


def _write(op: kit.Operator[CumSum]) -> kit.WrittenOp:
    attributes = op.attributes
    options = {"exclusive": attributes.exclusive, "reverse": attributes.reverse}
    axis = kit.int32_constant("axis", np.array([attributes.axis]))
    return kit.WrittenOp("CUMSUM", "CumsumOptions", options, (axis,))


def _sample(rng: np.random.Generator, dtype: kit.DType) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank)
    axis = int(rng.integers(-rank, rank))
    attributes = CumSum(axis, bool(rng.random() < 0.5), bool(rng.random() < 0.5))
    return kit.sample("cumsum", attributes, kit.Tensor("x", shape, dtype))


def _read_onnx(node: kit.OnnxNode) -> None:
    if not node.in_float:
        raise node.left_in_float("it has no int8 form")
    _emit_onnx(node, kit.DType.FLOAT32)


def _read_plain(node: kit.OnnxNode) -> None:
    if node.plain_dtype(0) is not kit.DType.INT32:
        raise node.unsupported("sums of int64", "cast to int32 or float32")
    _emit_onnx(node, kit.DType.INT32)


def _emit_onnx(node: kit.OnnxNode, dtype: kit.DType) -> None:
    order = node.axes(0)
    (axis,) = resolve_axes(node, node.integers(1), len(order))
    exclusive, reverse = (bool(node.attribute(name, 0)) for name in ("exclusive", "reverse"))
    attributes = CumSum(order.index(axis), exclusive, reverse)
    node.emit("cumsum", attributes, [node.operand(0, order)], None, order, dtype=dtype)


def _form(dtype: kit.DType) -> kit.Form[CumSum]:
    return kit.Form(
        kind="cumsum",
        attributes=CumSum,
        infer=infer_unary,
        reference=_reference,
        select=_select,
        sample=lambda rng: _sample(rng, dtype),
        tflite=kit.TfliteBinding(("CUMSUM",), _read, _write),
        onnx=kit.OnnxBinding(("CumSum",), _read_onnx, plain=_read_plain)
        if dtype is kit.DType.FLOAT32
        else None,
        dtype=dtype,
        limits=f"{dtype.value}; constant axis",
    )


def _reference_s8(op: kit.Operator[CumSum], inputs: kit.Inputs) -> kit.Arrays:
    centred = inputs[0].astype(np.int64) - op.x.q.zero_point
    return (settled(op, _sums(op.attributes, centred)),)


def _sample_s8(rng: np.random.Generator) -> kit.Graph:
    graph, q = _sample(rng, kit.DType.INT8), sample_quantisation(rng)
    scale = float(np.float32(q.scale * 2.0 ** rng.uniform(-1, 4)))
    qs = {"x": q, "y": sample_quantisation(rng, scale=scale)}
    return kit.with_tensors(graph, lambda tensor: replace(tensor, quantisation=qs[tensor.name]))


_INT8 = replace(
    _form(kit.DType.INT8),
    reference=_reference_s8,
    sample=_sample_s8,
    limits="int8 as tflite-micro has it; constant axis",
)
SPEC = kit.OpSpec((*(_form(dtype) for dtype in _PLAIN), _INT8))
