"""Difference of two int8 tensors, broadcasting: see `addition`."""

from __future__ import annotations

from toolchain.ops.elementwise.addition import sum_spec

SPEC = sum_spec("sub", -1)
