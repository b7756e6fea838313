"""Product of two tensors, broadcasting.

See `multiplication`, `multiplication_s16`, `binary_f32` and `binary_s32`.
"""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.binary_s32 import int32_form, int64_form
from toolchain.ops.elementwise.multiplication import MUL, read_mul
from toolchain.ops.elementwise.multiplication_s16 import WIDE_MUL
from toolchain.ops.spec import by_type

SPEC = by_type(
    {
        DType.INT8: MUL,
        DType.INT16: WIDE_MUL,
        DType.FLOAT32: float_form(MUL, read_mul),
        DType.INT32: int32_form(MUL, read_mul),
        DType.INT64: int64_form(MUL, read_mul),
    }
)
