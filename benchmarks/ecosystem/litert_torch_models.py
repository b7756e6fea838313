"""PyTorch networks by litert-torch (once ai-edge-torch), and ai-edge-quantizer's recipes."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import litert_torch
import numpy as np
import torch
from ai_edge_quantizer import quantizer, recipe
from torch import nn

from benchmarks.ecosystem import pytorch_networks as n
from benchmarks.ecosystem.pytorch_common import random_inputs, seeded

TOOL = f"litert-torch {version('litert-torch')}, ai-edge-quantizer {version('ai-edge-quantizer')}"
_SAMPLES = 6
_SHAPES: dict[str, list[tuple[int, ...] | str]] = {
    "mobilenet_v3": [(1, 3, 48, 48)],
    "shufflenet": [(1, 3, 32, 32)],
    "unet": [(1, 1, 32, 24)],
    "audio": [(1, 1, 1024)],
    "preactivated": [(1, 3, 24, 24)],
    "detector": [(1, 3, 48, 40)],
    "vision_transformer": [(1, 3, 32, 32)],
    "convnext": [(1, 3, 32, 32)],
    "bert": ["1x10"],
    "text_cnn": ["1x12"],
    "autoencoder": [(1, 65)],
    "siamese": [(1, 1, 8, 8), (1, 1, 8, 8)],
}
_INT8 = ("mobilenet_v3", "shufflenet", "unet", "audio", "preactivated", "detector", "convnext")
_DYNAMIC = ("mobilenet_v3", "vision_transformer", "bert", "autoencoder", "text_cnn")
_FLOAT = ("unet", "vision_transformer", "siamese")
_INT16 = ("unet", "autoencoder")


def converted(name: str) -> bytes:
    """The float TFLite file of a network of pytorch_networks."""
    network: nn.Module = seeded(getattr(n, name), 0)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder) / "float.tflite"
        with torch.no_grad():
            litert_torch.convert(network, random_inputs(_SHAPES[name], 0)).export(str(file))
        return file.read_bytes()


def _signature(data: bytes) -> tuple[str, dict[str, Any]]:
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_content=data)
    key = next(iter(runner.get_signature_list()))
    return key, runner.get_signature_runner(key).get_input_details()


def quantised(name: str, made: Any) -> bytes:
    """`made`: one of ai-edge-quantizer's recipes."""
    data = converted(name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "float.tflite"
        file.write_bytes(data)
        engine = quantizer.Quantizer(str(file))
        engine.load_quantization_recipe(made)
        calibrated = None
        if engine.need_calibration:
            key, details = _signature(data)
            rng = np.random.default_rng(1)
            drawn = [
                {
                    one: rng.integers(0, 24, detail["shape"]).astype(detail["dtype"])
                    if np.issubdtype(detail["dtype"], np.integer)
                    else rng.standard_normal(detail["shape"]).astype(np.float32)
                    for one, detail in details.items()
                }
                for _ in range(_SAMPLES)
            ]
            calibrated = engine.calibrate({key: drawn})
        return bytes(engine.quantize(calibrated).quantized_model)


def models() -> dict[str, Callable[[], bytes]]:
    """File names, and what makes each file's bytes."""

    def made(name: str, which: Callable[[], Any]) -> Callable[[], bytes]:
        return lambda: quantised(name, which())

    def plain(name: str) -> Callable[[], bytes]:
        return lambda: converted(name)

    found = {f"litert_{name}_float.tflite": plain(name) for name in _FLOAT}
    for names, label, which in (
        (_INT8, "int8", recipe.static_wi8_ai8),
        (_INT16, "int16", recipe.static_wi8_ai16),
        (_DYNAMIC, "dynamic", recipe.dynamic_wi8_afp32),
    ):
        found |= {f"litert_{name}_{label}.tflite": made(name, which) for name in names}
    return found
