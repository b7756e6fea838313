"""Running sums along an axis. TFLite CUMSUM (`reference_ops::CumSum`); int8 as tflite-micro has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor
from toolchain.ops.elementwise.common import infer_unary, sample_quantisation
from toolchain.ops.extents import Extents, whole
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Struct,
    Touched,
)
from toolchain.ops.movement.copies import int32_constant, integers, resolve_axis, sample_shape
from toolchain.ops.readers.onnx import resolve_axes
from toolchain.ops.reduction.fine_sums import parameters, settled
from toolchain.ops.spec import (
    Array,
    OnnxBinding,
    OnnxNode,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

Number = TypeVar("Number", bound=np.generic)
_SUFFIXES = {DType.FLOAT32: "f32", DType.INT32: "s32", DType.INT64: "s64"}


@dataclass(frozen=True)
class CumSum(Attributes):
    """With `exclusive` each sum omits its own element. With `reverse` sums run from the last
    element to the first.
    """

    axis: int
    exclusive: bool = False
    reverse: bool = False


def _attributes(op: Op) -> CumSum:
    assert isinstance(op.attributes, CumSum)
    return op.attributes


def _sums(attributes: CumSum, x: NDArray[Number]) -> NDArray[Number]:
    axis = resolve_axis(attributes.axis, x.ndim)
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


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (_sums(_attributes(op), inputs[0]),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    attributes, x = _attributes(op), graph.input(op, 0)
    axis = resolve_axis(attributes.axis, len(x.shape))
    params = Struct(
        "thimble_cumsum_params",
        {
            "outer": math.prod(x.shape[:axis]),
            "count": x.shape[axis],
            "inner": math.prod(x.shape[axis + 1 :]),
            "exclusive": int(attributes.exclusive),
            "reverse": int(attributes.reverse),
        },
    )
    arguments: dict[str, Argument] = {"params": params, "input": Input(0), "output": Output(0)}
    if x.dtype is DType.INT8:
        arguments["fine"] = Struct("thimble_fine_sum", dict(parameters(op, graph)))
    call = Call(f"thimble_cumsum_{_SUFFIXES.get(x.dtype, 's8')}", arguments)
    # Each place is read once, right before it is written; but not from the first to the last.
    return Kernel((call,), _extents, find_overlaps=lambda: (SafeOverlap(0, exact=True),))


def _extents(touched: Touched) -> Extents:
    call = touched.call
    size = call["params.outer"] * call["params.count"] * call["params.inner"]
    extent = whole(size, touched.outputs[0].element_bytes)
    return Extents({0: extent}, {0: extent})


def _read(node: TfliteNode) -> ReadOp:
    (axis,) = integers(node, 1)
    options = node.options
    return ReadOp(CumSum(axis, bool(options.exclusive), bool(options.reverse)), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes = _attributes(op)
    options = {"exclusive": attributes.exclusive, "reverse": attributes.reverse}
    axis = int32_constant("axis", np.array([attributes.axis]))
    return WrittenOp("CUMSUM", "CumsumOptions", options, (axis,))


def _sample(rng: np.random.Generator, dtype: DType) -> Graph:
    rank = int(rng.integers(1, 5))
    shape = sample_shape(rng, rank)
    axis = int(rng.integers(-rank, rank))
    attributes = CumSum(axis, bool(rng.random() < 0.5), bool(rng.random() < 0.5))
    ends = [Tensor(name, shape, dtype) for name in "xy"]
    op = Op("cumsum", "cumsum", ("x",), ("y",), attributes)
    return Graph.build("sample", ends, [op], ["x"], ["y"])


def _read_onnx(node: OnnxNode) -> None:
    if not node.in_float:
        raise node.left_in_float("it has no int8 form")
    _emit_onnx(node, DType.FLOAT32)


def _read_plain(node: OnnxNode) -> None:
    if node.plain_dtype(0) is not DType.INT32:
        raise node.unsupported("sums of int64", "cast to int32 or float32")
    _emit_onnx(node, DType.INT32)


def _emit_onnx(node: OnnxNode, dtype: DType) -> None:
    order = node.axes(0)
    (axis,) = resolve_axes(node, node.integers(1), len(order))
    exclusive, reverse = (bool(node.attribute(name, 0)) for name in ("exclusive", "reverse"))
    attributes = CumSum(order.index(axis), exclusive, reverse)
    node.emit("cumsum", attributes, [node.operand(0, order)], None, order, dtype=dtype)


def _form(dtype: DType) -> OldForm:
    return OldForm(
        kind="cumsum",
        attributes=CumSum,
        infer=infer_unary,
        reference=_reference,
        select=_select,
        sample=lambda rng: _sample(rng, dtype),
        tflite=TfliteBinding(("CUMSUM",), _read, _write),
        onnx=OnnxBinding(("CumSum",), _read_onnx, plain=_read_plain)
        if dtype is DType.FLOAT32
        else None,
        dtype=dtype,
        limits=f"{dtype.value}; constant axis",
    )


def _reference_s8(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    centred = inputs[0].astype(np.int64) - graph.input(op, 0).q.zero_point
    return (settled(op, graph, _sums(_attributes(op), centred)),)


def _sample_s8(rng: np.random.Generator) -> Graph:
    graph = _sample(rng, DType.INT8)
    x, y = graph.tensors["x"], graph.tensors["y"]
    q = sample_quantisation(rng)
    scale = float(np.float32(q.scale * 2.0 ** rng.uniform(-1, 4)))
    ends = (
        replace(x, quantisation=q),
        replace(y, quantisation=sample_quantisation(rng, scale=scale)),
    )
    return Graph.build("sample", ends, graph.ops, ["x"], ["y"])


_INT8 = replace(
    _form(DType.INT8),
    reference=_reference_s8,
    sample=_sample_s8,
    limits="int8 as tflite-micro has it; constant axis",
)
SPEC = OpSpec((*(_form(dtype) for dtype in _SUFFIXES), _INT8))
