"""Whose rounding an operator follows."""

from __future__ import annotations

from enum import Enum


class Rounding(Enum):
    """How an int32 sum or product becomes int8."""

    TFLITE = "tflite"
    """The kind's TFLite reference kernel."""
    ONNX = "onnx"
    """ONNX Runtime's: see `_onnx_rounding`."""
