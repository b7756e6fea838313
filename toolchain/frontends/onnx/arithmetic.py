"""Differences in reading operators on int8, on float32 and on plain integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.ir import DType, Quantisation
from toolchain.ops import specs
from toolchain.ops.arithmetic.activation import BOUNDS
from toolchain.ops.spec import Array, OnnxData

if TYPE_CHECKING:
    from toolchain.frontends.onnx.operators.row import Operator, Read

_ACTIVATIONS: Mapping[tuple[float, float], str] = MappingProxyType(
    {ends: activation.name for activation, ends in BOUNDS.items() if ends[0] > -math.inf}
)
"""From the least and largest result to the name in `Activation`."""
IN_INT8 = "quantise the model to int8"
"""A remedy for who did not ask for float."""


class Arithmetic:
    """On int8: tensors have a scale and a zero point; real constants are quantised here.

    `in_float`: on float32. `plain`: on bools and integers without a scale. `quantisation`: that of
    every tensor; None if each has its own.
    """

    in_float = False
    plain = False
    quantisation: Quantisation | None = None

    def reader(self, row: Operator) -> Read | None:
        """The reader of an operator in this arithmetic; None without one."""
        return row.quantised

    def check(self, kind: str) -> None:
        """Check a kind. Raises RefusedError for one that has no kernel in this arithmetic."""

    def dtype(self, dtype: DType) -> DType:
        """The element type of a result that a reader gives as `dtype`, usually INT8.

        Raises RefusedError if results cannot be of that type.
        """
        return dtype

    def constant(
        self, constant: OnnxData, wanted: Quantisation | None
    ) -> tuple[Array, Quantisation | None]:
        """A constant operand as kernels read it, quantised as `wanted` if that is given."""
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
        """Name in `Activation` of a clip to `bounds` whose result is stored as `output` says; NONE
        if int8 cannot represent values beyond the bounds. None if no activation is that clip.
        """
        low, high = bounds
        reach = [(v - output.zero_point) * output.scale for v in (-128, 127)]
        ends_within = high >= reach[1] - output.scale / 4
        if low <= reach[0] + output.scale / 4 and ends_within:
            return "NONE"
        name = _ACTIVATIONS.get(bounds)
        return _ACTIVATIONS.get((low, float("inf"))) if name is None and ends_within else name


class Plain(Arithmetic):
    """On bools and integers without a scale; sums and products wrap, as in ONNX Runtime."""

    plain = True

    def reader(self, row: Operator) -> Read | None:
        return row.plain

    def constant(
        self, constant: OnnxData, wanted: Quantisation | None
    ) -> tuple[Array, Quantisation | None]:
        return constant.data, None

    def activation(self, bounds: tuple[float, float], output: Quantisation) -> str | None:
        return None


class Float32(Arithmetic):
    """On float32: readers of quantised operators are reused where the kind has a float32 form.

    A reader sees every tensor as if it were quantised with scale 1 (`UNIT`), and constants as they
    are. The tensors that it emits are float32.
    """

    in_float = True
    quantisation = UNIT

    def reader(self, row: Operator) -> Read | None:
        return row.float32 or row.quantised

    def check(self, kind: str) -> None:
        if not any(_takes_float(form.dtype, form.dtypes) for form in specs()[kind].forms):
            raise RefusedError("it has no float32 kernel", IN_INT8)

    def dtype(self, dtype: DType) -> DType:
        if dtype in (DType.BOOL, DType.INT32, DType.INT64):
            return dtype
        if dtype not in (DType.INT8, DType.FLOAT32):
            raise RefusedError("it has no float32 kernel", IN_INT8)
        return DType.FLOAT32

    def constant(
        self, constant: OnnxData, wanted: Quantisation | None
    ) -> tuple[Array, Quantisation | None]:
        return constant.real, None

    def activation(self, bounds: tuple[float, float], output: Quantisation) -> str | None:
        return _ACTIVATIONS.get(bounds)


def _takes_float(dtype: DType | None, dtypes: frozenset[DType]) -> bool:
    """Whether a form is for float32, or for any type and so for float32."""
    return dtype in (None, DType.FLOAT32) and DType.FLOAT32 in dtypes


def _stored(real: NDArray[np.float64], q: Quantisation) -> Array:
    """Values stored as QuantizeLinear does: halves to even, saturated."""
    whole = np.clip(np.rint(real / q.scale) + q.zero_point, -128, 127)
    return np.asarray(whole.astype(np.int8))
