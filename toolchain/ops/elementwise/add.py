"""Sum of two tensors, broadcasting: see `addition`, `addition_s16`, `binary_f32` and
`binary_s32`.
"""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.elementwise.addition import read_sum, sum_spec
from toolchain.ops.elementwise.addition_s16 import int16_sum_spec
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.binary_s32 import int32_form, int64_form
from toolchain.ops.spec import by_type

_INT8 = sum_spec("add", 1)

SPEC = by_type(
    {
        DType.INT8: _INT8,
        DType.INT16: int16_sum_spec("add", 1),
        DType.FLOAT32: float_form(_INT8, read_sum),
        DType.INT32: int32_form(_INT8, read_sum),
        DType.INT64: int64_form(_INT8, read_sum),
    }
)
