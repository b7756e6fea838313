"""The bundled digits model is as good as its README says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
LITERT_CORRECT, ONNXRUNTIME_CORRECT = 441, 441


@pytest.fixture(scope="module")
def evaluate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits_evaluate", DIGITS / "evaluate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_samples_are_the_data_set_images(evaluate: ModuleType) -> None:
    images, labels = evaluate.held_out()
    assert images.shape == (450, 8, 8, 1) and labels.shape == (450,)
    assert images.min() == 0.0 and images.max() == 1.0
    assert np.bincount(labels, minlength=10).min() >= 40


def test_litert_accuracy_is_the_recorded_one(evaluate: ModuleType) -> None:
    images, labels = evaluate.held_out()
    assert int((evaluate.litert_classes(images) == labels).sum()) == LITERT_CORRECT


def test_onnxruntime_accuracy_is_near_the_recorded_one(evaluate: ModuleType) -> None:
    """ONNX Runtime's kernels differ a little between processors."""
    images, labels = evaluate.held_out()
    correct = int((evaluate.onnxruntime_classes(images) == labels).sum())
    assert abs(correct - ONNXRUNTIME_CORRECT) <= 2


def test_files_are_small() -> None:
    for name in ("digits_int8.tflite", "digits_qdq.onnx", "samples.npz"):
        assert (DIGITS / name).stat().st_size < 60_000
