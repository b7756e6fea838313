"""Maximum of two tensors, broadcasting: see `extremum`, `binary_f32` and `binary_s32`."""

from __future__ import annotations

import numpy as np

from toolchain.ir import DType
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.binary_s32 import int32_form, int64_form
from toolchain.ops.elementwise.extremum import extremum_spec
from toolchain.ops.spec import by_type

_INT8 = extremum_spec("maximum", np.maximum, DType.INT8)

SPEC = by_type(
    {
        DType.INT8: _INT8,
        DType.INT16: extremum_spec("maximum", np.maximum, DType.INT16),
        DType.FLOAT32: float_form(_INT8),
        DType.INT32: int32_form(_INT8),
        DType.INT64: int64_form(_INT8),
    }
)
