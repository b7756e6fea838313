"""What `compile_torch` and `compile_keras` return, of a model that needs neither framework."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.deployment.compile import compile_model
from toolchain.deployment.training import Built, compile_torch
from toolchain.errors import InputError
from toolchain.quantise.layers import LayerError, OutputError
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
