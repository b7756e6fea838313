"""Tensors: name, shape, element type, and the real numbers that their integers represent."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from toolchain.ir.values import identity_of


class DType(Enum):
    """Element types; the value is NumPy's name for the type."""

    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT32 = "float32"
    BOOL = "bool"

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        return np.dtype(self.value)

    @cached_property
    def size_bytes(self) -> int:
        return int(self.numpy.itemsize)

    @property
    def c_type(self) -> str:
        """The C type of an element, such as `int8_t`."""
        plain = {DType.FLOAT32: "float", DType.BOOL: "uint8_t"}
        return plain.get(self, f"{self.value}_t")


SMALLEST_SCALE = 2.0**-126
"""The smallest normal float32 number. Below it, cores that flush denormals to zero compute another
result, and the reciprocal overflows."""


def is_scale(scale: float) -> bool:
    """Whether arithmetic with this scale is defined: it is finite and at least `SMALLEST_SCALE`."""
    return math.isfinite(scale) and scale >= SMALLEST_SCALE


@dataclass(frozen=True)
class Quantisation:
    """real = scale * (stored - zero_point), as in the TFLite 8-bit quantisation specification.

    One scale and zero point for the whole tensor, or one per index of `axis`. Scales are exact
    float32 values held in Python floats.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None

    @cached_property
    def identity(self) -> Hashable:
        """Equal for two with equal scales, bit by bit, zero points and axis (`ir.identity`)."""
        return identity_of(self)

    @property
    def per_channel(self) -> bool:
        return len(self.scales) > 1

    @property
    def scale(self) -> float:
        """The scale of a per-tensor quantisation."""
        if len(self.scales) != 1:
            raise ValueError("per-channel quantisation has no single scale")
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        """The zero point shared by the whole tensor."""
        if len(set(self.zero_points)) != 1:
            raise ValueError("quantisation has no single zero point")
        return self.zero_points[0]


@dataclass(frozen=True)
class Serial:
    """Marks a tensor as one of a series of similar tensors that a split makes, one for each block.

    `number` is that of the block. Allocators may lay similar tensors at equal offsets. `series`:
    the name of the tensor that was split, then the role of each part, such as scratch.
    """

    series: tuple[str, ...]
    number: int

    def part(self, role: str) -> Serial:
        """The mark of something that belongs to each tensor of the series, such as its scratch."""
        return Serial((*self.series, role), self.number)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value in a graph. `constant` is set for weights and other data known at compile time.

    The layout is row-major; images are NHWC. A tensor has no address and no device; a plan gives it
    one. `serial`: set where a split made the tensor.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quantisation: Quantisation | None = None
    constant: NDArray[np.generic] | None = field(default=None, repr=False)
    serial: Serial | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return self.elements * self.dtype.size_bytes

    @property
    def is_constant(self) -> bool:
        return self.constant is not None

    @cached_property
    def identity(self) -> Hashable:
        """The tensor but for its name (`ir.identity`): shape, element type, quantisation and
        constant. Its constant must not change.
        """
        q = self.quantisation and self.quantisation.identity
        return self.shape, self.dtype, q, identity_of(self.constant)

    @property
    def q(self) -> Quantisation:
        """The quantisation, for operators that need one."""
        if self.quantisation is None:
            raise ValueError(f"tensor {self.name!r} is not quantised")
        return self.quantisation

    def __str__(self) -> str:
        dims = "x".join(str(d) for d in self.shape) or "scalar"
        return f"{self.name}: {self.dtype.value}[{dims}]"
