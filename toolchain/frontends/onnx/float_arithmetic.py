"""Float models: readers of quantised operators are reused where the kind has a float32 form.

A reader sees every tensor as if it were quantised with scale 1 (`UNIT`), and constants as they are.
The tensors that it emits are float32.
"""

from __future__ import annotations

from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.onnx.arithmetic import ACTIVATIONS, Arithmetic
from toolchain.frontends.onnx.operators.row import Operator, Read
from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.ir import DType, Quantisation
from toolchain.ops import specs
from toolchain.ops.spec import Array, OnnxData

IN_INT8 = "quantise the model to int8"
"""A remedy for who did not ask for float."""


class Float32(Arithmetic):
    """Tensors are float32."""

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
        return ACTIVATIONS.get(bounds)


def _takes_float(dtype: DType | None, dtypes: frozenset[DType]) -> bool:
    """Whether a form is for float32, or for any type and so for float32."""
    return dtype in (None, DType.FLOAT32) and DType.FLOAT32 in dtypes
