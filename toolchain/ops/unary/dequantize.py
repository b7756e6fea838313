"""Integers of 8 or 16 bits to float: scale * (x - zero_point). TFLite DEQUANTIZE (`Dequantize`).

Constants that are stored in fewer bits than they are used in (float16, or int8 with a scale per
channel) are converted at compile time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import check_per_tensor, sample_quantisation, sample_shape
from toolchain.ops.elementwise.kernels import sized_kernel

_TYPES = (kit.DType.INT8, kit.DType.UINT8, kit.DType.INT16)


def _infer(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    return (kit.TensorType(op.x.shape, kit.DType.FLOAT32),)


def dequantized(x: kit.Tensor, stored: kit.Array) -> kit.Array:
    """The real values of a tensor in float32. A float32 tensor keeps its values."""
    if x.dtype is kit.DType.FLOAT32:
        return stored
    shape = [1] * len(x.shape)
    if x.q.axis is not None:
        shape[x.q.axis] = -1
    zeros = np.array(x.q.zero_points, np.int32).reshape(shape)
    centred = (stored.astype(np.int32) - zeros).astype(np.float32)
    return centred * np.array(x.q.scales, np.float32).reshape(shape)


def _reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    return (dequantized(op.x, inputs[0]).reshape(op.y.shape),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    x = op.x
    if x.dtype not in _TYPES or x.quantisation is None or x.quantisation.per_channel:
        raise kit.UnsupportedError(
            f"dequantize {op.name!r}: tensor {x} is not int8, uint8 or int16 with one scale"
        )
    function = f"thimble_dequantize_{kit.SUFFIXES[x.dtype]}_f32"
    arguments = {"scale": np.float32(x.q.scale).item(), "zero_point": x.q.zero_point}
    return sized_kernel(op, function, arguments)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    x = node.inputs[0]
    if x is None or x.dtype not in _TYPES:
        kind = "nothing" if x is None else x.dtype.value
        raise node.unsupported(f"conversion of {kind} to float", "quantise the model to int8")
    check_per_tensor(node, x)
    return kit.ReadOp(kit.Attributes(), (0,))


def _write(op: kit.AnyOperator) -> kit.WrittenOp:
    return kit.WrittenOp("DEQUANTIZE", "DequantizeOptions", version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    dtype = _TYPES[int(rng.integers(3))]
    shape = sample_shape(rng)
    x = kit.Tensor("x", shape, dtype, sample_quantisation(rng, dtype))
    return kit.sample("dequantize", kit.Attributes(), x)


SPEC = kit.Form(
    kind="dequantize",
    attributes=kit.Attributes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=kit.elementwise_axes,
    types=frozenset({kit.DType.FLOAT32, *_TYPES}),
    tflite=kit.TfliteBinding(("DEQUANTIZE",), _read, _write),
    limits="int8, uint8 or int16 to float32, per tensor; constants per channel or of float16, too",
)
