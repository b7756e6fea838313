"""Between a model's own inputs and outputs and the int8 graph tensors that stand for them.

The device computes on integers; whoever feeds it converts, exactly as the model's own QUANTIZE and
DEQUANTIZE would: LiteRT `AffineQuantize` (float32 division, halves away from zero) or ONNX
QuantizeLinear (halves to even); `Dequantize` is scale * (stored - zero point) in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ir.tensor import DType, Quantisation, Tensor

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Boundary:
    """How a model's own input or output differs from the graph tensor that stands for it.

    `tensor` is the graph's (int8, NHWC) input or output. `dtype` and `quantisation` are those in
    the model file: float32 without a quantisation, or uint8 with the graph's scale and a zero point
    128 above the graph's. `permutation` is the model's layout: axis i of the graph tensor is axis
    permutation[i] of the model's, () where they agree. `halves_to_even` is ONNX's rounding.
    A tensor without a Boundary is the same in both.
    """

    tensor: str
    dtype: DType
    quantisation: Quantisation | None = None
    permutation: tuple[int, ...] = ()
    halves_to_even: bool = False


def model_shape(tensor: Tensor, boundary: Boundary | None) -> tuple[int, ...]:
    """The shape that the model's own file gives the tensor."""
    if boundary is None or not boundary.permutation:
        return tensor.shape
    shape = [0] * len(tensor.shape)
    for axis, size in zip(boundary.permutation, tensor.shape, strict=True):
        shape[axis] = size
    return tuple(shape)


def model_dtype(tensor: Tensor, boundary: Boundary | None) -> DType:
    """The element type that the model's own file gives the tensor."""
    return tensor.dtype if boundary is None else boundary.dtype


def to_graph(values: Array, tensor: Tensor, boundary: Boundary | None) -> Array:
    """A model's own input as the graph's tensor."""
    if boundary is None:
        return values
    if boundary.permutation:
        values = np.transpose(values, boundary.permutation)
    if boundary.dtype is tensor.dtype:
        return np.ascontiguousarray(values)
    if boundary.dtype is DType.FLOAT32:
        info = np.iinfo(tensor.dtype.value)
        ratio = values.astype(np.float32) / np.float32(tensor.q.scale)
        if boundary.halves_to_even:
            rounded = np.rint(ratio)
        else:
            rounded = np.trunc(ratio + np.copysign(np.float32(0.5), ratio).astype(np.float64))
        stored = np.clip(rounded.astype(np.float64) + tensor.q.zero_point, info.min, info.max)
        converted: Array = stored.astype(tensor.dtype.numpy)
        return converted
    return _shifted(values, tensor.dtype, tensor.q.zero_point - _zero_point(boundary))


def to_model(values: Array, tensor: Tensor, boundary: Boundary | None) -> Array:
    """The graph's tensor as the model's own output."""
    if boundary is None:
        return values
    if boundary.dtype is DType.FLOAT32:
        real = values.astype(np.int32) - tensor.q.zero_point
        values = np.float32(tensor.q.scale) * real.astype(np.float32)
    elif boundary.dtype is not tensor.dtype:
        values = _shifted(values, boundary.dtype, _zero_point(boundary) - tensor.q.zero_point)
    if boundary.permutation:
        values = np.transpose(values, np.argsort(boundary.permutation))
    return np.ascontiguousarray(values)


def _zero_point(boundary: Boundary) -> int:
    if boundary.quantisation is None:
        raise ValueError(f"boundary of {boundary.tensor!r}: an integer type needs a quantisation")
    return boundary.quantisation.zero_point


def _shifted(values: Array, dtype: DType, by: int) -> Array:
    return (values.astype(np.int32) + by).astype(dtype.numpy)


def random_input(
    rng: np.random.Generator, tensor: Tensor, boundary: Boundary | None = None
) -> Array:
    """A model's own input at random, over the whole range that the graph tensor can hold."""
    shape, dtype = model_shape(tensor, boundary), model_dtype(tensor, boundary)
    if dtype is not DType.FLOAT32:
        info = np.iinfo(dtype.value)
        return rng.integers(info.min, info.max, shape, np.int64, endpoint=True).astype(dtype.numpy)
    if tensor.quantisation is None:
        return rng.standard_normal(shape).astype(np.float32)
    info = np.iinfo(tensor.dtype.value)
    low, high = ((bound - tensor.q.zero_point) * tensor.q.scale for bound in (info.min, info.max))
    return rng.uniform(low, high, shape).astype(np.float32)
