"""What a division that rounds down leaves. TFLite FLOOR_MOD, float32 and int32."""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.elementwise.plain import plain_spec

SPEC = plain_spec("floor_mod", "FloorModOptions", DType.FLOAT32, DType.INT32)
