"""TFLite files of TensorFlow's converter, as tf2onnx writes them in ONNX."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

import tf2onnx

from benchmarks.ecosystem import tensorflow_models

TOOL = f"{tensorflow_models.TOOL}, tf2onnx {tf2onnx.__version__}"
_OPSET = 15
_NAMES = (
    *("conv_corners", "depthwise_corners", "pools", "broadcasts", "mobilenet_v3", "densenet"),
    *("shufflenet", "unet", "audio_tcn", "detector"),
)


def converted(data: bytes) -> bytes:
    """A TFLite file as an ONNX QDQ model."""
    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.tflite"
        file.write_bytes(data)
        model, _ = tf2onnx.convert.from_tflite(str(file), opset=_OPSET)
    return bytes(model.SerializeToString())


def models() -> dict[str, Callable[[], bytes]]:
    """File names, and what makes each file's bytes."""
    made = tensorflow_models.models()
    return {
        f"tf2onnx_{name}.onnx": lambda name=name: converted(made[f"tf_{name}.tflite"]())
        for name in _NAMES
    }
