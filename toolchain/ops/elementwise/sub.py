"""Difference of two tensors, broadcasting: see `addition` and `addition_s16`."""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.elementwise.addition import sum_spec
from toolchain.ops.elementwise.addition_s16 import wide_sum_spec
from toolchain.ops.spec import by_type

SPEC = by_type(
    {
        DType.INT8: sum_spec("sub", -1),
        DType.INT16: wide_sum_spec("sub", -1),
    }
)
