"""Pad: surround the input with a constant.

TFLite PAD (the constant is the zero point) and PADV2 (any constant). Any element type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy, row_major, strided_copy
from toolchain.ops.movement.kernels import copy_loops, run_extent, strided_loops
from toolchain.ops.movement.mirror_pad import MirrorPad
from toolchain.ops.readers.onnx import resolve_axes


@dataclass(frozen=True)
class Pad(kit.Attributes):
    """`paddings` are elements before and after, for each dimension. `value` is stored, not real;
    None stands for the zero point (0 for tensors that are not quantised).
    """

    paddings: tuple[tuple[int, int], ...]
    value: int | float | None = None


def _infer(op: kit.Operator[Pad]) -> kit.TensorTypes:
    x, paddings = op.x, op.attributes.paddings
    if len(paddings) != len(x.shape) or any(min(pair) < 0 for pair in paddings):
        raise ValueError(f"paddings {list(paddings)} do not suit {len(x.shape)} dimensions")
    shape = tuple(d + before + after for d, (before, after) in zip(x.shape, paddings, strict=True))
    return (kit.TensorType(shape, x.dtype),)


_PADDED_BY_ZERO_POINT = frozenset({kit.DType.INT8, kit.DType.UINT8, kit.DType.INT16})
"""LiteRT's PAD writes 0 into other types, whatever their quantisation says (`pad.cc`)."""


def _stored_value(op: kit.Operator[Pad]) -> kit.Array:
    """The constant as one element of the output's type."""
    y, value = op.y, op.attributes.value
    if value is None:
        quantised = y.quantisation is not None and y.dtype in _PADDED_BY_ZERO_POINT
        value = y.q.zero_point if quantised else 0
    return np.full(1, value, y.dtype.numpy)


def _reference(op: kit.Operator[Pad], inputs: kit.Inputs) -> kit.Arrays:
    return (np.pad(inputs[0], op.attributes.paddings, constant_values=_stored_value(op)[0]),)


def _axes(op: kit.Operator[Pad]) -> tuple[kit.Axis, ...]:
    """Every axis. The partitioner refuses a block that holds padding alone, because it has no
    operand.
    """
    attributes = op.attributes

    def along(axis: int) -> kit.Axis:
        def padded(part: kit.Part) -> Pad:
            pairs = list(attributes.paddings)
            pairs[axis] = (part.before, part.after)
            return replace(attributes, paddings=tuple(pairs))

        return kit.Axis(axis, (kit.Reach(axis, before=attributes.paddings[axis][0]),), padded)

    return tuple(along(axis) for axis in range(len(attributes.paddings)))


def _select(op: kit.Operator[Pad], core: kit.Core) -> kit.Kernel:
    """The input's rows in the order of the output; everything between them is filled."""
    x, y = op.x, op.y
    strides = row_major(y.shape)
    before = [pair[0] for pair in op.attributes.paddings]
    start = sum(pad * stride for pad, stride in zip(before, strides, strict=True))
    size = x.dtype.size_bytes
    copy, *_ = strided_copy(x.shape, row_major(x.shape), strides, size, target_offset=start)
    value = _stored_value(op).tobytes()
    uniform = len(set(value)) == 1
    params = kit.Struct(
        "thimble_pad_params",
        {
            "loops": copy_loops(copy.loops),
            "loop_count": len(copy.loops),
            "run_bytes": copy.run_bytes,
            "start_bytes": copy.target_offset,
            "output_bytes": y.size_bytes,
            "value": kit.Items("uint8_t", tuple(value[:1] if uniform else value)),
            "value_bytes": 1 if uniform else len(value),
        },
    )
    call = kit.Call(
        "thimble_pad", {"params": params, "source": kit.Input(0), "target": kit.Output(0)}
    )
    return kit.Kernel(
        (call,),
        _extents,
        find_overlaps=lambda: _overlaps(copy),
        find_terms=lambda: _terms(copy, y.size_bytes, 1 if uniform else len(value)),
    )


def _terms(copy: StridedCopy, output_bytes: int, value_bytes: int) -> kit.Terms:
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


def _overlaps(copy: StridedCopy) -> tuple[kit.SafeOverlap, ...]:
    """The kernel writes forward and never passes a byte it has not read, if the input lies far
    enough behind the output's start: at least where its last row will stay in place."""
    read = sum((loop.count - 1) * loop.source_stride for loop in copy.loops)
    written = sum((loop.count - 1) * loop.target_stride for loop in copy.loops)
    return (kit.SafeOverlap(0, 0, copy.target_offset + written - read),)


def _extents(touched: kit.Touched) -> kit.Extents:
    """`output_bytes` are filled but for the runs, which are copied."""
    call, run_bytes = touched.call, touched.call["params.run_bytes"]
    runs = run_extent(0, run_bytes, strided_loops(call, "params.loops", "source_stride"))
    start = call["params.start_bytes"]
    inner = run_extent(start, run_bytes, strided_loops(call, "params.loops", "target_stride"))
    written = kit.Extent(min(inner.begin, 0), max(inner.end, call["params.output_bytes"]))
    return kit.Extents({0: runs}, {0: written}, largest=inner.end)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    paddings = node.constant(1).reshape(-1, 2)
    value: int | float | None = None
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        stored = node.constant(2).reshape(-1)[0]
        value = float(stored) if stored.dtype.kind == "f" else int(stored)
    return kit.ReadOp(Pad(tuple((int(a), int(b)) for a, b in paddings), value), (0,))


def _write(op: kit.Operator[Pad]) -> kit.WrittenOp:
    attributes, y = op.attributes, op.y
    paddings = kit.int32_constant("paddings", np.array(attributes.paddings))
    if attributes.value is None:
        return kit.WrittenOp("PAD", "PadOptions", extra_inputs=(paddings,), version=2)
    value = kit.Tensor("value", (1,), y.dtype, y.quantisation, _stored_value(op))
    return kit.WrittenOp("PADV2", "PadV2Options", extra_inputs=(paddings, value), version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank, 600)
    ends = rng.integers(0, 4, (rank, 2)) * (rng.random((rank, 1)) < 0.6)
    paddings = tuple((int(a), int(b)) for a, b in ends)
    dtype, quantisation = kit.sample_type(rng)
    value: int | float | None = None
    if rng.random() < 0.5:
        value = -1.5 if dtype is kit.DType.FLOAT32 else int(rng.integers(-128, 128))
    return kit.sample("pad", Pad(paddings, value), kit.Tensor("x", shape, dtype, quantisation))


def _read_onnx(node: kit.OnnxNode) -> None:
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
            given, q = q, node.output_quantisation(q)
            stored, _ = _stored_real(value, q)
            if q is given and abs((stored - q.zero_point) * q.scale - value) > q.scale:
                raise node.unsupported(
                    f"its value {value:g} lies outside of what its input's scale can hold",
                    "quantise its result with a scale that can",
                )
    if not -128 <= stored <= 127:
        raise node.unsupported(f"the value {value:g} is no 8-bit integer")
    attributes = Pad(paddings, None if stored == q.zero_point else stored)
    node.emit("pad", attributes, [node.operand(0, order, quantisation=q)], q, order)


def _stored_real(value: float, q: kit.Quantisation) -> tuple[int, bool]:
    """A real value as QuantizeLinear stores it, and whether that is exactly the value."""
    stored = int(np.clip(np.rint(value / q.scale) + q.zero_point, -128, 127))
    return stored, (stored - q.zero_point) * q.scale == value


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="pad",
    attributes=Pad,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("PAD", "PADV2"), _read, _write),
    axes=_axes,
    types=frozenset(kit.DType),
    onnx=kit.OnnxBinding(("Pad",), _read_onnx),
    limits="any type; paddings and value are constant",
)
