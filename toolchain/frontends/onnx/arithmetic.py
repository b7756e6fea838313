"""Differences in reading operators on int8, on float32 and on plain integers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType, Quantisation
from toolchain.ops.arithmetic.activation import BOUNDS
from toolchain.ops.spec import Array, OnnxData

if TYPE_CHECKING:
    from toolchain.frontends.onnx.operators.row import Operator, Read

ACTIVATIONS: Mapping[tuple[float, float], str] = MappingProxyType(
    {ends: activation.name for activation, ends in BOUNDS.items() if ends[0] > -math.inf}
)
"""From the least and largest result to the name in `Activation`."""


class Arithmetic(ABC):
    """See `Int8`, `Plain`, and `Float32` in `float_arithmetic`.

    `plain`: values are bools and integers without a scale. `quantisation`: that of every tensor;
    None if each has its own.
    """

    in_float = False
    plain = False
    quantisation: Quantisation | None = None

    @abstractmethod
    def reader(self, row: Operator) -> Read | None:
        """The reader of an operator in this arithmetic; None without one."""

    def check(self, kind: str) -> None:  # noqa: B027 - by default every kind has one
        """Check a kind. Raises RefusedError for one that has no kernel in this arithmetic."""

    def dtype(self, dtype: DType) -> DType:
        """The element type of a result that a reader gives as `dtype`, usually INT8.

        Raises RefusedError if results cannot be of that type.
        """
        return dtype

    @abstractmethod
    def constant(
        self, constant: OnnxData, wanted: Quantisation | None
    ) -> tuple[Array, Quantisation | None]:
        """A constant operand as kernels read it, quantised as `wanted` if that is given."""

    @abstractmethod
    def activation(self, bounds: tuple[float, float], output: Quantisation) -> str | None:
        """Name in `Activation` of a clip to `bounds` whose result is stored as `output` says.

        None if no activation is that clip.
        """


class Int8(Arithmetic):
    """Tensors are int8 with a scale and a zero point; real constants are quantised here."""

    def reader(self, row: Operator) -> Read | None:
        return row.quantised

    def constant(
        self, constant: OnnxData, wanted: Quantisation | None
    ) -> tuple[Array, Quantisation | None]:
        if wanted is not None:
            return _stored(constant.real, wanted), wanted
        q = constant.quantisation
        if q is not None and constant.data.dtype == np.int8 and not q.per_channel:
            return constant.data.astype(np.int8), q
        real = constant.real
        largest = float(np.float32(np.abs(real).max())) if real.size else 0.0
        steps = 1 if np.isin(np.abs(real), (0.0, largest)).all() else 127
        scale = float(np.float32(largest / steps)) or 1.0
        data = np.clip(np.round(real / scale), -127, 127).astype(np.int8)
        return data, Quantisation((scale,), (0,))

    def activation(self, bounds: tuple[float, float], output: Quantisation) -> str | None:
        """The name of the clip; NONE if int8 cannot represent values beyond the bounds."""
        low, high = bounds
        reach = [(v - output.zero_point) * output.scale for v in (-128, 127)]
        ends_within = high >= reach[1] - output.scale / 4
        if low <= reach[0] + output.scale / 4 and ends_within:
            return "NONE"
        name = ACTIVATIONS.get(bounds)
        return ACTIVATIONS.get((low, float("inf"))) if name is None and ends_within else name


class Plain(Arithmetic):
    """Tensors are bools and integers without a scale; sums and products wrap, as in ONNX
    Runtime.
    """

    plain = True

    def reader(self, row: Operator) -> Read | None:
        return row.plain

    def constant(
        self, constant: OnnxData, wanted: Quantisation | None
    ) -> tuple[Array, Quantisation | None]:
        return constant.data, None

    def activation(self, bounds: tuple[float, float], output: Quantisation) -> str | None:
        return None


def _stored(real: NDArray[np.float64], q: Quantisation) -> NDArray[np.int8]:
    """Values stored as QuantizeLinear does: halves to even, saturated."""
    stored: NDArray[np.int8] = np.clip(np.rint(real / q.scale) + q.zero_point, -128, 127).astype(
        np.int8
    )
    return stored
