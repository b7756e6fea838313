"""int16 functions of one operand that TFLite evaluates at 513 points and interpolates between.

Source: LiteRT `LUTPopulateInt16` and `LUTLookup`, in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.elementwise.common import check_node, require_types
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.readers.int16 import int16_sample
from toolchain.ops.unary.float_table import Float32

Transform = Callable[[kit.Operator[Any], Float32], Float32]
_STEPS = 512
_LOW, _HIGH = -32768, 32767


def _round(value: Float32) -> Float32:
    """Halves away from zero."""
    wide = value.astype(np.float64)
    rounded: Float32 = np.copysign(np.floor(np.abs(wide) + 0.5), wide).astype(np.float32)
    return rounded


def _table(op: kit.AnyOperator, transform: Transform) -> NDArray[np.int16]:
    """Entries lean so that interpolation errs least midway."""
    one, two = np.float32(1), np.float32(2)
    x, y = (np.float32(t.q.scale) for t in (op.x, op.y))
    low, high = x * np.float32(_LOW), x * np.float32(_HIGH)
    step = (high - low) / np.float32(_STEPS)
    inverse = np.float32(_HIGH - _LOW + 1) / (y * np.float32(_HIGH) - y * np.float32(_LOW))
    place = np.arange(_STEPS, dtype=np.float32)
    with np.errstate(all="ignore"):
        here = _round(transform(op, low + place * step) * inverse)
        after = transform(op, low + (place + one) * step) * inverse
        midway = _round(transform(op, low + place * step + step / two) * inverse)
        interpolated = _round((after + here) / two)
        entries = here - _round((interpolated - midway) / two)
        last = _round(transform(op, np.array([high], np.float32)) * inverse)
        whole = np.concatenate([entries, last])
    number = np.nan_to_num(whole, nan=0.0, posinf=_HIGH, neginf=_LOW)  # as x86 converts it
    table: NDArray[np.int16] = np.clip(number, _LOW, _HIGH).astype(np.int16)
    return table


def float_table_s16_spec(
    base: kit.Form[Any],
    transform: Transform,
    attributes: Callable[[kit.TfliteNode], kit.Attributes] = lambda node: kit.Attributes(),
) -> kit.Form[Any]:
    """The int16 form of a kind that `float_table` made. `attributes` reads them from a file."""
    assert base.tflite is not None
    binding = base.tflite

    def reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
        table, value = _table(op, transform).astype(np.int64), inputs[0].astype(np.int64)
        index = 256 + (value >> 7)
        slope = (table[index + 1] - table[index]).astype(np.int16).astype(np.int64)
        result = table[index] + ((slope * (value & 0x7F) + 64) >> 7)
        return (result.astype(np.int16).reshape(op.y.shape),)

    def select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        require_types(op, kit.DType.INT16)
        comment = f"{base.kind} at every 128th value"
        table = kit.Constant("table", lambda: _table(op, transform), comment)
        return sized_kernel(op, "thimble_lookup_s16", table=table)

    def read(node: kit.TfliteNode) -> kit.ReadOp:
        check_node(node, kit.DType.INT16)
        return kit.ReadOp(attributes(node), (0,))

    return replace(
        base,
        reference=reference,
        select=select,
        sample=int16_sample(base.sample),
        tflite=kit.TfliteBinding(binding.builtins, read, binding.write),
        onnx=None,
        dtype=kit.DType.INT16,
        limits="int16",
    )
