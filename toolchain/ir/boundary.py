"""Conversions between a model's own inputs and outputs and the int8 tensors of the graph.

The device computes on integers, and the caller converts, exactly as the model's own QUANTIZE and
DEQUANTIZE would. Quantising is LiteRT's `AffineQuantize` (float32 division, halves away from zero)
or ONNX's QuantizeLinear (halves to even). Dequantising is scale * (stored - zero point) in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ir.tensor import DType, Quantisation, Tensor

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Boundary:
    """How a model's own input or output differs from the graph tensor that represents it.

    `tensor` is the graph's (int8, NHWC) input or output. `dtype` and `quantisation` are those in
    the model file: float32 without a quantisation, or uint8 with the graph's scale and a zero point
    128 above the graph's. `permutation` is the model's layout: axis i of the graph tensor is axis
    permutation[i] of the model's; () where the layouts agree. `halves_to_even` is ONNX's rounding.
    A tensor without a Boundary is the same in both.
    """

    tensor: str
    dtype: DType
    quantisation: Quantisation | None = None
    permutation: tuple[int, ...] = ()
    halves_to_even: bool = False


@dataclass(frozen=True)
class End:
    """An input or output of a model: the graph tensor, and its boundary if it has one."""

    tensor: Tensor
    boundary: Boundary | None = None

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def model_shape(self) -> tuple[int, ...]:
        """The shape that the model's own file gives the tensor."""
        if self.boundary is None or not self.boundary.permutation:
            return self.tensor.shape
        shape = [0] * len(self.tensor.shape)
        for axis, size in zip(self.boundary.permutation, self.tensor.shape, strict=True):
            shape[axis] = size
        return tuple(shape)

    @property
    def model_dtype(self) -> DType:
        """The element type that the model's own file gives the tensor."""
        return self.tensor.dtype if self.boundary is None else self.boundary.dtype

    def to_graph(self, values: Array) -> Array:
        """Convert a model's own input to the graph's tensor."""
        boundary, tensor = self.boundary, self.tensor
        if boundary is None:
            return values
        if boundary.permutation:
            values = np.transpose(values, boundary.permutation)
        if boundary.dtype is tensor.dtype:
            return np.ascontiguousarray(values)
        if boundary.dtype is not DType.FLOAT32:
            return self._shifted(values, tensor.dtype, -self._zero_point_above)
        info = np.iinfo(tensor.dtype.value)
        ratio = values.astype(np.float32) / np.float32(tensor.q.scale)
        if boundary.halves_to_even:
            rounded = np.rint(ratio).astype(np.float64)
        else:
            exact = ratio.astype(np.float64)
            rounded = np.trunc(exact + np.copysign(0.5, exact))
        stored = np.clip(rounded + tensor.q.zero_point, info.min, info.max)
        result: Array = stored.astype(tensor.dtype.numpy)
        return result

    def to_model(self, values: Array) -> Array:
        """Convert the graph's tensor to the model's own output."""
        boundary, tensor = self.boundary, self.tensor
        if boundary is None:
            return values
        if boundary.dtype is not tensor.dtype:
            if boundary.dtype is DType.FLOAT32:
                steps = values.astype(np.int32) - tensor.q.zero_point
                values = np.float32(tensor.q.scale) * steps.astype(np.float32)
            else:
                values = self._shifted(values, boundary.dtype, self._zero_point_above)
        if boundary.permutation:
            values = np.transpose(values, np.argsort(boundary.permutation))
        return np.ascontiguousarray(values)

    def random(self, rng: np.random.Generator) -> Array:
        """A random input of the model, over the whole range that the graph tensor can hold."""
        shape, dtype, tensor = self.model_shape, self.model_dtype, self.tensor
        if dtype is DType.BOOL:
            return rng.integers(0, 2, shape).astype(np.bool_)
        if dtype is not DType.FLOAT32:
            info = np.iinfo(dtype.value)
            most = min(info.max, np.iinfo(np.int64).max)
            integers = rng.integers(info.min, most, shape, np.int64, endpoint=True)
            return integers.astype(dtype.numpy)
        if tensor.quantisation is None:
            return rng.standard_normal(shape).astype(np.float32)
        info = np.iinfo(tensor.dtype.value)
        low = tensor.q.scale * (info.min - tensor.q.zero_point)
        high = tensor.q.scale * (info.max - tensor.q.zero_point)
        return rng.uniform(low, high, shape).astype(np.float32)

    @property
    def _zero_point_above(self) -> int:
        """How far the model's zero point lies above the graph's."""
        if self.boundary is None or self.boundary.quantisation is None:
            raise ValueError(f"boundary of {self.name!r}: an integer type needs a quantisation")
        return self.boundary.quantisation.zero_point - self.tensor.q.zero_point

    @staticmethod
    def _shifted(values: Array, dtype: DType, by: int) -> Array:
        result: Array = (values.astype(np.int32) + by).astype(dtype.numpy)
        return result
