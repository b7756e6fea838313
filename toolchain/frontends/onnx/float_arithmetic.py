"""Float models: the int8 readers are reused, and their operators become float32 kinds.

A reader sees every tensor as if it were quantised with scale 1 (`UNIT`), and constants as they are.
What it emits gets the kind that computes the same in float32, and float32 tensors.
"""

from __future__ import annotations

import numpy as np

from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.onnx.arithmetic import ACTIVATIONS
from toolchain.frontends.onnx.operators.row import Operator, Read
from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.ir import Attributes, DType, Quantisation
from toolchain.ops import specs
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.resize.common import Resize
from toolchain.ops.resize.resize_linear import ResizeLinear
from toolchain.ops.spec import Array, OnnxData
from toolchain.ops.unary.leaky_relu import LeakyRelu
from toolchain.ops.unary.lookup import Lookup

IN_INT8 = "quantise the model to int8"
"""A remedy for who did not ask for float."""
_MOVERS = frozenset(
    {"arg_max", "concat", "gather", "mirror_pad", "pad", "reshape", "resize_nearest", "select"}
    | {"slice", "split", "tile", "top_k", "transpose"}
)
"""Kinds that move or compare values of any type."""


def _as_float(kind: str, attributes: Attributes) -> tuple[str, Attributes]:
    """The kind that computes in float32 what `kind` computes in int8.

    Raises RefusedError where there is none.
    """
    if kind in _MOVERS:
        return kind, attributes
    if isinstance(attributes, ResizeLinear):
        sizes = (attributes.height, attributes.width)
        sources = [size / scale for size, scale in zip(sizes, attributes.scales, strict=True)]
        if any(abs(source - round(source)) > 1e-4 for source in sources):
            raise RefusedError("its scales are not those of its sizes", "export it with sizes")
        corners = attributes.coordinates == "align_corners"
        centers = attributes.coordinates in ("half_pixel", "pytorch_half_pixel")
        resize = Resize(attributes.height, attributes.width, corners, centers)
        return "resize_bilinear", resize
    if kind == "softmax_once":
        return "softmax", Softmax()
    if isinstance(attributes, Lookup) and attributes.function == "LeakyRelu":
        return "leaky_relu", LeakyRelu(float(np.float32(attributes.parameters[0])))
    spec = specs().get(kind)
    if spec is not None and any(_computes_float(form.dtypes) for form in spec.forms):
        return kind, attributes
    raise RefusedError("it has no float32 kernel", IN_INT8)


def _computes_float(dtypes: frozenset[DType]) -> bool:
    """Whether a form is for float32, and for no quantised type."""
    return DType.FLOAT32 in dtypes and DType.INT8 not in dtypes


class Float32:
    """Tensors are float32."""

    in_float = True
    plain = False
    quantisation = UNIT

    def reader(self, row: Operator) -> Read | None:
        return row.float32 or row.quantised

    def kind(self, kind: str, attributes: Attributes) -> tuple[str, Attributes]:
        return _as_float(kind, attributes)

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
