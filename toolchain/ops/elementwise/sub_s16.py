"""Difference of two int16 tensors, broadcasting. TFLite SUB: see `add_s16`."""

from __future__ import annotations

from dataclasses import replace

from toolchain.ops.elementwise import add_s16, sub
from toolchain.ops.elementwise.add_s16 import read_sum, write_sum
from toolchain.ops.readers.wide import wide_sample
from toolchain.ops.spec import TfliteBinding

SPEC = replace(
    add_s16.SPEC,
    kind="sub_s16",
    sample=wide_sample(sub.SPEC.sample),
    tflite=TfliteBinding(("SUB",), read_sum, write_sum),
)
