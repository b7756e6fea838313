"""Exclusive or of bits. TFLite BITWISE_XOR, int32."""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.elementwise.plain import plain_spec

SPEC = plain_spec("bitwise_xor", "", DType.INT32)
