"""Pad: surround the input with a constant.

TFLite PAD (the constant is the zero point) and PADV2 (any constant). Any element type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.extents import Extent, Extents
from toolchain.ops.forms import OldForm
from toolchain.ops.kernel import (
    Call,
    Input,
    Items,
    Kernel,
    Output,
    SafeOverlap,
    Struct,
    Terms,
    Touched,
)
from toolchain.ops.movement.copies import (
    StridedCopy,
    int32_constant,
    row_major,
    sample_shape,
    sample_type,
    strided_copy,
)
from toolchain.ops.movement.kernels import copy_loops, run_extent, strided_loops
from toolchain.ops.movement.mirror_pad import MirrorPad
from toolchain.ops.readers.onnx import resolve_axes
from toolchain.ops.spec import (
    STORED,
    Array,
    Axis,
    OnnxBinding,
    OnnxNode,
    Part,
    Reach,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)


@dataclass(frozen=True)
class Pad(Attributes):
    """`paddings` are elements before and after, for each dimension. `value` is stored, not real;
    None stands for the zero point (0 for tensors that are not quantised).
    """

    paddings: tuple[tuple[int, int], ...]
    value: int | float | None = None


def _attributes(op: Op) -> Pad:
    assert isinstance(op.attributes, Pad)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, paddings = graph.input(op, 0), _attributes(op).paddings
    if len(paddings) != len(x.shape) or any(min(pair) < 0 for pair in paddings):
        raise ValueError(f"paddings {list(paddings)} do not suit {len(x.shape)} dimensions")
    shape = tuple(d + before + after for d, (before, after) in zip(x.shape, paddings, strict=True))
    return (TensorType(shape, x.dtype),)


_PADDED_BY_ZERO_POINT = frozenset({DType.INT8, DType.UINT8, DType.INT16})
"""LiteRT's PAD writes 0 into other types, whatever their quantisation says (`pad.cc`)."""


def _stored_value(op: Op, graph: Graph) -> Array:
    """The constant as one element of the output's type."""
    y, value = graph.output(op), _attributes(op).value
    if value is None:
        quantised = y.quantisation is not None and y.dtype in _PADDED_BY_ZERO_POINT
        value = y.q.zero_point if quantised else 0
    return np.full(1, value, y.dtype.numpy)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (
        np.pad(inputs[0], _attributes(op).paddings, constant_values=_stored_value(op, graph)[0]),
    )


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Every axis. The partitioner refuses a block that holds padding alone, because it has no
    operand.
    """
    attributes = _attributes(op)

    def along(axis: int) -> Axis:
        def padded(part: Part) -> Pad:
            pairs = list(attributes.paddings)
            pairs[axis] = (part.before, part.after)
            return replace(attributes, paddings=tuple(pairs))

        return Axis(axis, (Reach(axis, before=attributes.paddings[axis][0]),), padded)

    return tuple(along(axis) for axis in range(len(attributes.paddings)))


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    """The input's rows in the order of the output; everything between them is filled."""
    x, y = graph.input(op, 0), graph.output(op)
    strides = row_major(y.shape)
    before = [pair[0] for pair in _attributes(op).paddings]
    start = sum(pad * stride for pad, stride in zip(before, strides, strict=True))
    size = x.dtype.size_bytes
    copy, *_ = strided_copy(x.shape, row_major(x.shape), strides, size, target_offset=start)
    value = _stored_value(op, graph).tobytes()
    uniform = len(set(value)) == 1
    params = Struct(
        "thimble_pad_params",
        {
            "loops": copy_loops(copy.loops),
            "loop_count": len(copy.loops),
            "run_bytes": copy.run_bytes,
            "start_bytes": copy.target_offset,
            "output_bytes": y.size_bytes,
            "value": Items("uint8_t", tuple(value[:1] if uniform else value)),
            "value_bytes": 1 if uniform else len(value),
        },
    )
    call = Call("thimble_pad", {"params": params, "source": Input(0), "target": Output(0)})
    return Kernel(
        (call,),
        _extents,
        find_overlaps=lambda: _overlaps(copy),
        find_terms=lambda: _terms(copy, y.size_bytes, 1 if uniform else len(value)),
    )


def _terms(copy: StridedCopy, output_bytes: int, value_bytes: int) -> Terms:
    """`thimble_pad`: runs of input, and before each what is filled."""
    runs = math.prod(loop.count for loop in copy.loops)
    inner = copy.loops[-1].count if copy.loops else 1
    gap = copy.loops[-1].target_stride - copy.run_bytes if copy.loops else 0
    filled = output_bytes - runs * copy.run_bytes
    terms = {
        "call": 1.0,
        "run": runs,
        "turn": runs / inner,
        "word": runs * (copy.run_bytes // 4),
        "byte": runs * (copy.run_bytes % 4),
    }
    if value_bytes > 1:
        return {**terms, "filled value": filled / value_bytes}
    return {**terms, "filled byte": runs * (gap % 4), "filled word": filled / 4}


def _overlaps(copy: StridedCopy) -> tuple[SafeOverlap, ...]:
    """The kernel writes forward and never passes a byte it has not read, if the input lies far
    enough behind the output's start: at least where its last row will stay in place."""
    read = sum((loop.count - 1) * loop.source_stride for loop in copy.loops)
    written = sum((loop.count - 1) * loop.target_stride for loop in copy.loops)
    return (SafeOverlap(0, 0, copy.target_offset + written - read),)


def _extents(touched: Touched) -> Extents:
    """`output_bytes` are filled but for the runs, which are copied."""
    call, run_bytes = touched.call, touched.call["params.run_bytes"]
    runs = run_extent(0, run_bytes, strided_loops(call, "params.loops", "source_stride"))
    start = call["params.start_bytes"]
    inner = run_extent(start, run_bytes, strided_loops(call, "params.loops", "target_stride"))
    written = Extent(min(inner.begin, 0), max(inner.end, call["params.output_bytes"]))
    return Extents({0: runs}, {0: written}, largest=inner.end)


def _read(node: TfliteNode) -> ReadOp:
    paddings = node.constant(1).reshape(-1, 2)
    value: int | float | None = None
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        stored = node.constant(2).reshape(-1)[0]
        value = float(stored) if stored.dtype.kind == "f" else int(stored)
    return ReadOp(Pad(tuple((int(a), int(b)) for a, b in paddings), value), (0,))


def _write(op: Op, graph: Graph) -> WrittenOp:
    attributes, y = _attributes(op), graph.output(op)
    paddings = int32_constant("paddings", np.array(attributes.paddings))
    if attributes.value is None:
        return WrittenOp("PAD", "PadOptions", extra_inputs=(paddings,), version=2)
    value = Tensor("value", (1,), y.dtype, y.quantisation, _stored_value(op, graph))
    return WrittenOp("PADV2", "PadV2Options", extra_inputs=(paddings, value), version=2)


def _sample(rng: np.random.Generator) -> Graph:
    rank = int(rng.integers(1, 5))
    shape = sample_shape(rng, rank, 600)
    ends = rng.integers(0, 4, (rank, 2)) * (rng.random((rank, 1)) < 0.6)
    paddings = tuple((int(a), int(b)) for a, b in ends)
    dtype, quantisation = sample_type(rng)
    value: int | float | None = None
    if rng.random() < 0.5:
        value = -1.5 if dtype is DType.FLOAT32 else int(rng.integers(-128, 128))
    x = Tensor("x", shape, dtype, quantisation)
    padded = tuple(d + a + b for d, (a, b) in zip(shape, paddings, strict=True))
    y = Tensor("y", padded, dtype, quantisation)
    op = Op("pad", "pad", ("x",), ("y",), Pad(paddings, value))
    return Graph.build("sample", [x, y], [op], ["x"], ["y"])


def _read_onnx(node: OnnxNode) -> None:
    """Padding by a constant, stored as the input's quantisation has it, or by reflection."""
    mode = node.attribute("mode", "constant")
    if mode not in ("constant", "reflect"):
        raise node.unsupported(f"padding mode {mode!r}", "pad with a constant, or reflect")
    rank = len(node.shape(0))
    amounts, value = node.integers(1), 0.0
    unsigned = False
    if node.has(2):
        value = float(node.constant(2).real.reshape(()))
        unsigned = node.constant(2).data.dtype == np.uint8
    axes = resolve_axes(node, node.integers(3), rank) if node.has(3) else tuple(range(rank))
    if len(amounts) != 2 * len(axes) or min(amounts, default=0) < 0:
        raise node.unsupported(f"padding by {list(amounts)}", "crop with Slice")
    around = {axis: (amounts[i], amounts[i + len(axes)]) for i, axis in enumerate(axes)}
    order, q = node.axes(0), node.quantisation(0)
    paddings = tuple(around.get(axis, (0, 0)) for axis in order)
    if mode == "reflect":
        node.emit("mirror_pad", MirrorPad(paddings), [node.operand(0, order)], q, order)
        return
    if node.in_float:
        node.emit("pad", Pad(paddings, value or None), [node.operand(0, order)], q, order)
        return
    if node.holds_integers:
        if not node.has(2):
            raise node.unsupported("padding of integers with no value", "give it the zero point")
        stored = int(value) - (128 if unsigned else 0)
    else:
        stored, exact = _stored_real(value, q)
        if not exact:  # what follows may hold it: requantising before or after is the same
            own, q = q, node.output_quantisation(q)
            stored, _ = _stored_real(value, q)
            if q is own and abs((stored - q.zero_point) * q.scale - value) > q.scale:
                raise node.unsupported(
                    f"its value {value:g} lies outside of what its input's scale can hold",
                    "quantise its result with a scale that can",
                )
    if not -128 <= stored <= 127:
        raise node.unsupported(f"the value {value:g} is no 8-bit integer")
    attributes = Pad(paddings, None if stored == q.zero_point else stored)
    node.emit("pad", attributes, [node.operand(0, order, quantisation=q)], q, order)


def _stored_real(value: float, q: Quantisation) -> tuple[int, bool]:
    """A real value as QuantizeLinear stores it, and whether that is exactly the value."""
    stored = int(np.clip(np.rint(value / q.scale) + q.zero_point, -128, 127))
    return stored, (stored - q.zero_point) * q.scale == value


SPEC = OldForm(
    quantised=STORED,
    kind="pad",
    attributes=Pad,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("PAD", "PADV2"), _read, _write),
    axes=_axes,
    types=frozenset(DType),
    onnx=OnnxBinding(("Pad",), _read_onnx),
    limits="any type; paddings and value are constant",
)
