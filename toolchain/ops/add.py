"""Sum of two int8 tensors, broadcasting: see `_addition`."""

from __future__ import annotations

from toolchain.ops._addition import sum_spec

SPEC = sum_spec("add", 1)
