"""Angles of points, from their heights and widths. TFLite ATAN2, float32."""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.elementwise.plain import plain_spec

SPEC = plain_spec("atan2", "", DType.FLOAT32, broadcasts=False)
