"""Integers shifted right by 0 to 31 bits, what is beyond held there. TFLite RIGHT_SHIFT, int32."""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.elementwise.plain import plain_spec

SPEC = plain_spec("right_shift", "", DType.INT32)
