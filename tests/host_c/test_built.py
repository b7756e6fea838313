"""What `compile_torch` and `compile_keras` return, of a model that needs neither framework."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from toolchain.deployment import training
from toolchain.deployment.compile import compile_model
from toolchain.deployment.training import Built, compile_torch
from toolchain.errors import InputError
from toolchain.quantise.layers import LayerError, OutputError
from toolchain.quantise.tensorflow import _unrolled
from toolchain.resources import RUNTIME_C

DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"
LAYERS = (LayerError("conv;Relu", "conv_2d", 30.0, 0.1), LayerError("dense", "add", 12.5, 0.2))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    out = tmp_path_factory.mktemp("built") / "out"
    outputs = (OutputError("a", 30.0, 0.1, 0.1, 1.0), OutputError("b", 20.0, 0.1, 0.1, 0.75))
    return Built(compile_model(DIGITS, "host", out), DIGITS, LAYERS, outputs)


def test_it_runs_on_real_numbers(built: Built) -> None:
    samples = np.load(DIGITS.parent / "samples.npz")
    for image, label in zip(samples["images"][:5], samples["labels"][:5], strict=True):
        (scores,) = built.run(image / 16).values()
        assert scores.dtype == np.float64 and 0.9 < scores.sum() < 1.1
        assert scores.argmax() == label
    with pytest.raises(InputError, match="the model has 1 inputs, and 2 are given"):
        built.run(image, image)
    with pytest.raises(InputError, match=r"not \[63\]"):
        built.run(image.reshape(-1)[:63])


def test_a_prompt_shows_figures_not_a_dump(built: Built) -> None:
    shown = repr(built)
    assert shown == str(built) and len(shown.splitlines()) == 3
    assert "arena" in shown and "largest output in 75.0%" in shown
    assert "noisiest: dense 12.5 dB, conv 30.0 dB" in shown and str(built.folder) in shown


def test_samples_without_batches_are_refused_before_anything_is_done() -> None:
    """A map-style Dataset of PyTorch: it has elements, but gives none by itself."""
    with pytest.raises(InputError, match=r"samples: object is no array .* a loader of batches"):
        compile_torch(None, object(), "host")


class _Exporter:
    """Stands for `torch.onnx`: the older exporter refuses; so does the newer one, with `newer`."""

    def __init__(self, newer: str) -> None:
        self.newer = newer
        self.asked: list[tuple[bool, int]] = []

    def export(
        self, model: object, arguments: object, file: str, *, dynamo: bool, **more: Any
    ) -> None:
        self.asked.append((dynamo, more["opset_version"]))
        if not dynamo:
            raise RuntimeError("aten::bilinear is not supported\nat line 3")
        if self.newer:
            raise RuntimeError("step 1/3 failed") from ModuleNotFoundError(self.newer)
        Path(file).write_bytes(b"exported")


class _Torch:
    def __init__(self, newer: str = "") -> None:
        self.onnx = _Exporter(newer)

    @staticmethod
    def from_numpy(values: object) -> object:
        return values


class _Model:
    """Of PyTorch: it remembers the mode it is in."""

    training = True

    def eval(self) -> None:
        self.training = False

    def train(self, training: bool) -> None:
        self.training = training


def test_what_the_older_exporter_does_not_know_the_newer_one_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample, file, model = [np.zeros((1, 2), np.float32)], tmp_path / "model.onnx", _Model()
    works = _Torch()
    monkeypatch.setattr(training, "torch", works)
    training._export(model, sample, ["x"], file)
    assert file.read_bytes() == b"exported" and works.onnx.asked == [(False, 17), (True, 18)]
    assert model.training
    monkeypatch.setattr(training, "torch", _Torch("No module named 'onnxscript'"))
    both = r"aten::bilinear is not supported; nor can its newer exporter: No module .*onnxscript"
    with pytest.raises(InputError, match=both):
        training._export(model, sample, ["x"], file)


class _Layer:
    """Of Keras: a recurrent one has `unroll`."""

    def __init__(self, **fields: bool) -> None:
        vars(self).update(fields)


def test_recurrent_layers_of_keras_are_unrolled_while_they_are_calibrated() -> None:
    """TensorFlow's calibrator ends the process by a signal where the file has a loop."""
    layers = [_Layer(), _Layer(unroll=False), _Layer(unroll=True)]
    model = SimpleNamespace(_flatten_layers=lambda: iter(layers))
    with pytest.raises(ValueError, match="the converter's"), _unrolled(model):
        assert [vars(layer) for layer in layers] == [{}, {"unroll": True}, {"unroll": True}]
        raise ValueError("the converter's")
    assert [vars(layer) for layer in layers] == [{}, {"unroll": False}, {"unroll": True}]
