"""Difference of two tensors, broadcasting: see `addition`, `addition_s16`, `binary_f32` and
`binary_s32`."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.elementwise.addition import read_sum, sum_spec
from toolchain.ops.elementwise.addition_s16 import int16_sum_spec
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.binary_s32 import int32_form, int64_form

_INT8 = sum_spec("sub", -1)

SPEC = kit.OpSpec(
    (
        _INT8,
        int16_sum_spec("sub", -1),
        float_form(_INT8, read_sum),
        int32_form(_INT8, read_sum),
        int64_form(_INT8, read_sum),
    )
)
