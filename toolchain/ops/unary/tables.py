"""Real functions of one operand as tables that LiteRT fills in float32.

int8: a result for each of the 256 values (`LUTPopulate`). int16: results at 513 points, between
which the kernel interpolates (`LUTPopulateInt16`, `LUTLookup`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.elementwise.common import Int64
from toolchain.ops.elementwise.kernels import sized_kernel
from toolchain.ops.elementwise.rows import Formula, Stored

Float32 = NDArray[np.float32]
_LOWEST = -1e30
"""NaN becomes the lowest output, as x86 converts it."""
_STEPS = 512
_LOW, _HIGH = -32768, 32767


def _round(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Halves away from zero."""
    wide = values.astype(np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide)


def table(formula: Formula, output_scale: float | None = None, version: int = 2) -> Stored:
    """A function of int8."""
    function = formula.libm
    assert function is not None

    def apply(op: kit.AnyOperator, stored: Int64) -> Int64:
        x, y = op.x.q, op.y.q
        with np.errstate(all="ignore"):
            real = np.float32(x.scale) * (stored - x.zero_point).astype(np.float32)
            scaled = function(real) * (np.float32(1) / np.float32(y.scale))
        wide = scaled.astype(np.float64)
        rounded = _round(np.nan_to_num(wide, nan=_LOWEST, posinf=-_LOWEST, neginf=_LOWEST))
        clamped: Int64 = np.clip(rounded + y.zero_point, -128, 127).astype(np.int64)
        return clamped

    return Stored(apply, output_scale=output_scale, version=version)


def interpolated(formula: Formula, elsewhere: int | None = None) -> Stored:
    """A function of int16. `elsewhere`: the stored result of what is not positive, of a function
    of positive numbers.
    """
    function = formula.libm
    assert function is not None

    def real(op: kit.AnyOperator, x: Float32) -> Float32:
        values: Float32 = function(x)
        if elsewhere is None:
            return values
        there = np.float32(op.y.q.scale) * np.float32(elsewhere)
        return np.where(x > 0, values, there).astype(np.float32)

    def points(op: kit.AnyOperator) -> NDArray[np.int16]:
        """Entries lean so that interpolation errs least midway."""
        one, two = np.float32(1), np.float32(2)
        x, y = (np.float32(t.q.scale) for t in (op.x, op.y))
        low, high = x * np.float32(_LOW), x * np.float32(_HIGH)
        step = (high - low) / np.float32(_STEPS)
        inverse = np.float32(_HIGH - _LOW + 1) / (y * np.float32(_HIGH) - y * np.float32(_LOW))
        place = np.arange(_STEPS, dtype=np.float32)
        with np.errstate(all="ignore"):
            here = _rounded(real(op, low + place * step) * inverse)
            after = real(op, low + (place + one) * step) * inverse
            midway = _rounded(real(op, low + place * step + step / two) * inverse)
            between = _rounded((after + here) / two)
            entries = here - _rounded((between - midway) / two)
            last = _rounded(real(op, np.array([high], np.float32)) * inverse)
            whole = np.concatenate([entries, last])
        number = np.nan_to_num(whole, nan=0.0, posinf=_HIGH, neginf=_LOW)  # as x86 converts it
        made: NDArray[np.int16] = np.clip(number, _LOW, _HIGH).astype(np.int16)
        return made

    def apply(op: kit.AnyOperator, stored: Int64) -> Int64:
        entries = points(op).astype(np.int64)
        index = 256 + (stored >> 7)
        slope = (entries[index + 1] - entries[index]).astype(np.int16).astype(np.int64)
        result: Int64 = entries[index] + ((slope * (stored & 0x7F) + 64) >> 7)
        return result

    def kernel(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        comment = f"{op.kind} at every 128th value"
        entries = kit.Constant("table", lambda: points(op), comment)
        return sized_kernel(op, "thimble_lookup_s16", table=entries)

    return Stored(apply, kernel)


def _rounded(values: Float32) -> Float32:
    return _round(values).astype(np.float32)
