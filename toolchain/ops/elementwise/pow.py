"""Powers. TFLite POW, float32 and int32."""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.elementwise.common import Pow
from toolchain.ops.elementwise.plain import plain_spec

SPEC = plain_spec("pow", "PowOptions", DType.FLOAT32, DType.INT32, attributes_of=Pow.of)
