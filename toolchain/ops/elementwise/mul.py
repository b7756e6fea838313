"""Product of two tensors, broadcasting: see `multiplication` and `multiplication_s16`."""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.elementwise.multiplication import MUL
from toolchain.ops.elementwise.multiplication_s16 import WIDE_MUL
from toolchain.ops.spec import by_type

SPEC = by_type({DType.INT8: MUL, DType.INT16: WIDE_MUL})
