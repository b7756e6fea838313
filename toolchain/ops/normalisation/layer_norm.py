"""Normalisation of int8 rows. ONNX LayerNormalization and InstanceNormalization.

y = (x - mean) / sqrt(variance + epsilon) * gain + offset over the last dimensions, in float between
two quantised tensors. A layer has a gain per element of a row; an instance has one per row. Sums
are exact integers. The rest is float32 with one rounding per operation, and the inverse square root
takes four Newton steps, so every machine gives the same bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.rounding import nearest
from toolchain.ops.elementwise.common import sample_quantisation, sample_shape
from toolchain.ops.normalisation.rows import row_extents
from toolchain.ops.readers.onnx import resolve_axes

Float32 = NDArray[np.float32]
_LONGEST = 1 << 22
_MAGIC = 0x5F3759DF


@dataclass(frozen=True)
class LayerNorm(kit.Attributes):
    """`axis` is the first dimension that is normalised. Inputs: x, gain, offset.

    With `by_channel` there is one gain and one offset per index of the dimension before `axis`.
    """

    axis: int
    epsilon: float = 1e-5
    by_channel: bool = False


def _row(op: kit.Operator[LayerNorm]) -> tuple[int, int]:
    """The first normalised dimension, and the elements of a row."""
    shape = op.x.shape
    return op.attributes.axis, math.prod(shape[op.attributes.axis :])


def _by_channel(op: kit.Operator[LayerNorm]) -> bool:
    return op.attributes.by_channel


def _infer(op: kit.Operator[LayerNorm]) -> kit.TensorTypes:
    x, (axis, length) = op.x, _row(op)
    if not int(_by_channel(op)) <= axis < len(x.shape):
        raise ValueError(f"dimension {axis} of {x}")
    count = x.shape[axis - 1] if _by_channel(op) else length
    for given in (op.input(1), op.input(2)):
        if given.elements != count or not given.is_constant:
            raise ValueError(f"{given} has not {count} elements")
    return (kit.TensorType(x.shape, x.dtype),)


def _factors(op: kit.Operator[LayerNorm]) -> tuple[Float32, Float32, np.float32]:
    """Gain and offset in steps of the output, and epsilon in squared steps of the input."""
    x, y = op.x.q, op.y.q
    gain, offset = op.input(1).constant, op.input(2).constant
    assert gain is not None and offset is not None
    steps = (data.reshape(-1).astype(np.float64) / y.scale for data in (gain, offset))
    gains, offsets = (values.astype(np.float32) for values in steps)
    return gains, offsets, np.float32(max(op.attributes.epsilon, 0.0) / x.scale**2)


def inverse_root(x: Float32) -> Float32:
    """1 / sqrt(x) in float32 by Newton's iteration, operation by operation as the kernel's C."""
    half, three_halves = np.float32(0.5), np.float32(1.5)
    y = (np.uint32(_MAGIC) - (x.view(np.uint32) >> np.uint32(1))).view(np.float32)
    for _ in range(4):
        y = y * (three_halves - half * x * y * y)
    return y


def _reference(op: kit.Operator[LayerNorm], inputs: kit.Inputs) -> kit.Arrays:
    y, (_, length) = op.y, _row(op)
    gains, offsets, epsilon = _factors(op)
    rows = inputs[0].reshape(-1, length).astype(np.int64)
    total, squares = rows.sum(1), (rows**2).sum(1)
    spread = (length * squares - total * total).astype(np.float32)
    count = np.float32(length)
    variance = spread / (count * count) + epsilon
    inverse = inverse_root(np.maximum(variance, np.float32(1e-20))) / count
    centred = (length * rows - total[:, None]).astype(np.float32)
    if _by_channel(op):
        gains, offsets = (np.resize(v, len(rows))[:, None] for v in (gains, offsets))
    real = centred * inverse[:, None] * gains + offsets
    stored = np.clip(nearest(real) + y.q.zero_point, -128, 127)
    return (stored.astype(np.int8).reshape(y.shape),)


def _select(op: kit.Operator[LayerNorm], core: kit.Core) -> kit.Kernel:
    x, y, (_, length) = op.x, op.y, _row(op)
    if length > _LONGEST:
        raise op.refused(f"rows of {length} elements, at most {_LONGEST} are supported")
    gains, offsets, epsilon = _factors(op)
    params = kit.Struct(
        "thimble_layer_norm_params",
        {
            "rows": x.elements // length,
            "length": length,
            "channels": len(gains) if _by_channel(op) else 0,
            "epsilon": float(epsilon),
            "zero_point": y.q.zero_point,
            "gain": kit.Packed("gain"),
            "offset": kit.Packed("offset"),
        },
    )
    call = kit.Call(
        "thimble_layer_norm_s8", {"params": params, "input": kit.Input(0), "output": kit.Output(0)}
    )
    return kit.Kernel(
        (call,),
        row_extents("params.rows", "params.length", _tables),
        constants=(
            kit.constant("gain", gains, "gain in steps of the output"),
            kit.constant("offset", offsets, "offset in steps of the output"),
        ),
        # A row is read whole before its first element is written; then each before its own.
        find_overlaps=lambda: (kit.SafeOverlap(0),),
    )


def _tables(touched: kit.Touched) -> dict[str, int]:
    """A gain for each element of a row or, with `channels`, for each channel."""
    call = touched.call
    channels = call["params.channels"]
    count = min(channels, call["params.rows"]) if channels else call["params.length"]
    return {"gain": 4 * count, "offset": 4 * count}


def _axes(op: kit.Operator[LayerNorm]) -> tuple[kit.Axis, ...]:
    """The dimensions ahead of those that are normalised, and of those that have gains."""
    first = _row(op)[0] - int(_by_channel(op))
    return tuple(axis for axis in kit.elementwise_axes(op) if axis.axis < first)


def _read(node: kit.OnnxNode) -> None:
    shape = node.shape(0)
    rank = len(shape)
    (axis,) = resolve_axes(node, (int(node.attribute("axis", -1)),), rank)
    if node.outputs > 1:
        raise node.unsupported("its mean or deviation is an output", "export it for inference")
    length = math.prod(shape[axis:])
    gain = node.constant(1).real if node.has(1) else np.ones(length)
    offset = node.constant(2).real if node.has(2) else np.zeros(length)
    wide = [np.broadcast_to(values, shape[axis:]).astype(np.float32) for values in (gain, offset)]
    order = tuple(range(rank))
    inputs = [
        node.operand(0, order),
        node.add_constant("gain", wide[0].reshape(-1), None),
        node.add_constant("offset", wide[1].reshape(-1), None),
    ]
    attributes = LayerNorm(axis, float(node.attribute("epsilon", 1e-5)))
    node.emit("layer_norm", attributes, inputs, node.output_quantisation(), order)


def _read_instance(node: kit.OnnxNode) -> None:
    """InstanceNormalization: one channel of one image is a row."""
    order = tuple(range(len(node.shape(0))))
    inputs = [node.operand(0, order)]
    for index, name in ((1, "gain"), (2, "offset")):
        values = node.constant(index).real.astype(np.float32).reshape(-1)
        inputs.append(node.add_constant(name, values, None))
    attributes = LayerNorm(2, float(node.attribute("epsilon", 1e-5)), by_channel=True)
    node.emit("layer_norm", attributes, inputs, node.output_quantisation(), order)


def _read_onnx(node: kit.OnnxNode) -> None:
    (_read if node.operator == "LayerNormalization" else _read_instance)(node)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = sample_shape(rng, 4, 20)
    axis = int(rng.integers(len(shape)))
    by_channel = axis > 0 and bool(rng.random() < 0.4)
    count = shape[axis - 1] if by_channel else math.prod(shape[axis:])
    gain, offset = (
        kit.constant_sample(name, rng.normal(mean, 0.5, count).astype(np.float32))
        for name, mean in (("gain", 1), ("offset", 0))
    )
    scale = kit.sample_scale(rng, -6, -3)
    x = kit.Tensor("x", shape, kit.DType.INT8, sample_quantisation(rng))
    q = kit.Quantisation((scale,), (int(rng.integers(-128, 128)),))
    attributes = LayerNorm(axis, by_channel=by_channel)
    return kit.sample("layer_norm", attributes, x, gain, offset, q=q, name="norm")


SPEC = kit.Form(
    kind="layer_norm",
    attributes=LayerNorm,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=_axes,
    onnx=kit.OnnxBinding(("InstanceNormalization", "LayerNormalization"), _read_onnx),
    types=frozenset({kit.DType.INT8, kit.DType.FLOAT32}),
    limits="int8, constant gain and offset; computed in float32",
)
