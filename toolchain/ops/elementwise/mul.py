"""Product of two tensors, broadcasting.

See `multiplication`, `multiplication_s16`, `binary_f32` and `binary_s32`.
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.binary_s32 import int32_form, int64_form
from toolchain.ops.elementwise.multiplication import MUL, read_mul
from toolchain.ops.elementwise.multiplication_s16 import WIDE_MUL

SPEC = kit.OpSpec(
    (MUL, WIDE_MUL, float_form(MUL, read_mul), int32_form(MUL, read_mul), int64_form(MUL, read_mul))
)
