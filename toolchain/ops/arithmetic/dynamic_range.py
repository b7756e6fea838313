"""Quantising floats by the range that they have, in NumPy as the C does.

`thimble_quantize_range_f32`: `NeonSymmetricQuantizeFloats` and `NeonAsymmetricQuantizeFloats` of
LiteRT, which its build for x86 calls, too. `thimble_quantize_dynamic_f32`: DynamicQuantizeLinear of
ONNX.
"""

from __future__ import annotations

import math
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.arithmetic.fixed_point import round_half_away

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
_LANES = 8


class Range(Enum):
    """Who chooses the scale of floats. The value is the name in `thimble_range`."""

    SYMMETRIC = "THIMBLE_RANGE_SYMMETRIC"
    """LiteRT, within -127 to 127, around 0."""
    ASYMMETRIC = "THIMBLE_RANGE_ASYMMETRIC"
    """LiteRT, within -128 to 127, with a zero point."""
    ONNX = "THIMBLE_RANGE_ONNX"
    """DynamicQuantizeLinear; its uint8 values are stored 128 lower."""


def quantised(values: Float32, chosen: Range) -> tuple[Int64, np.float32, int]:
    """The stored values in the shape of `values`, their scale and their zero point."""
    if chosen is Range.ONNX:
        return _quantised_onnx(values)
    asymmetric = chosen is Range.ASYMMETRIC
    flat = values.reshape(-1)
    low, high = np.minimum(flat.min(), np.float32(0)), np.maximum(flat.max(), np.float32(0))
    if low == high:
        return np.zeros(values.shape, np.int64), np.float32(1), 0
    zero_point, least = 0, -127
    if asymmetric:
        step = float(high - low) / 255.0
        zero_point, least = _zero_point(float(low), float(high), step), -128
        scale = np.float32(step)
        inverse = np.float32(1) / scale if scale > 0 else np.float32(0)
    else:
        scale = np.maximum(high, -low) / np.float32(127)
        inverse = np.float32(127) / np.maximum(high, -low)
    stored = _nearest(flat * inverse) + zero_point
    return np.clip(stored, least, 127).reshape(values.shape), scale, zero_point


def _quantised_onnx(values: Float32) -> tuple[Int64, np.float32, int]:
    """As ONNX Runtime's `GetQuantizationParameter` and `MlasQuantizeLinear`, in float32."""
    low, high = np.float32(np.fmin(values.min(), 0)), np.float32(np.fmax(values.max(), 0))
    with np.errstate(invalid="ignore", over="ignore"):
        scale = (high - low) / np.float32(255) if low < high else np.float32(1)
        below, quotients = -low / scale, np.nan_to_num(values / scale, nan=0.0)
    zero_point = int(np.rint(below)) if below < 255 else 255
    stored = np.rint(np.clip(quotients, -1024, 1024)).astype(np.int64) + zero_point
    return np.clip(stored, 0, 255) - 128, scale, zero_point - 128


def _zero_point(low: float, high: float, step: float) -> int:
    """The one that represents the range's better end most exactly."""
    below, above = low / step, high / step
    point = -128.0 - below if 128.0 - below < 127.0 + above else 127.0 - above
    return int(np.clip(math.copysign(math.floor(abs(point) + 0.5), point), -128, 127))


def _nearest(x: Float32) -> Int64:
    """Halves away from zero; in whole vectors by adding 0.5 first."""
    near = np.clip(x, np.float32(-1024), np.float32(1024))
    vectors = len(x) - len(x) % _LANES
    rounded = round_half_away(near.astype(np.float64))
    raised = near + np.where(near < 0, np.float32(-0.5), np.float32(0.5))
    rounded[:vectors] = np.trunc(raised[:vectors]).astype(np.int64)
    return rounded
