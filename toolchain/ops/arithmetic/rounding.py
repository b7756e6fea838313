"""Which runtime's rounding an operator follows; rounding in float32."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray


class Rounding(Enum):
    """How an int32 sum or product becomes int8."""

    TFLITE = "tflite"
    """The kind's TFLite reference kernel."""
    ONNX = "onnx"
    """ONNX Runtime's: see `onnx_rounding`."""


def nearest(x: NDArray[np.float32]) -> NDArray[np.int64]:
    """To the nearest integer, halves to even (`thimble_nearest`). Values too large for fractions
    stay.
    """
    rounded: NDArray[np.int64] = np.rint(np.clip(x, -1024, 1024)).astype(np.int64)
    return rounded
