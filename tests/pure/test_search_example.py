"""The search among architectures for the digits: its training, its models, and what it finds."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra [onnx] is not installed")

SEARCH = Path(__file__).parents[2] / "examples" / "search" / "search.py"


@pytest.fixture(scope="module")
def search() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("digits_search", SEARCH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["digits_search"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["digits_search"]


def test_gradients_are_those_of_the_loss(search: ModuleType) -> None:
    architecture = search.Architecture(((3, 2), (4, 1)))
    rng = np.random.default_rng(1)
    weights = [
        tuple(part.astype(np.float64) for part in pair)
        for pair in search.weights_of(architecture, rng)
    ]
    x, labels = rng.uniform(0.1, 1, (5, 8, 8, 1)), np.arange(5)

    def loss() -> float:
        found = search.logits(architecture, weights, x)[0]
        odds = np.exp(found) / np.exp(found).sum(axis=1, keepdims=True)
        return float(-np.log(odds[np.arange(5), labels]).mean())

    slopes = search.gradients(architecture, weights, x, labels)
    for pair, own in zip(weights, slopes, strict=True):
        for part, slope in zip(pair, own, strict=True):
            place = tuple(rng.integers(0, size) for size in part.shape)
            before = part[place]
            ends = []
            for step in (1e-5, -1e-5):
                part[place] = before + step
                ends.append(loss())
            part[place] = before
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-2, abs=1e-6)


def test_the_model_is_what_was_trained(search: ModuleType) -> None:
    runtime = pytest.importorskip("onnxruntime")
    architecture = search.Architecture(((8, 2), (16, 1)))
    weights = search.weights_of(architecture, np.random.default_rng(2))
    image = np.random.default_rng(3).uniform(0, 1, (1, 8, 8, 1)).astype(np.float32)
    session = runtime.InferenceSession(search.onnx_model(architecture, weights).SerializeToString())
    (got,) = session.run(None, {"image": image.transpose(0, 3, 1, 2)})
    want = np.exp(search.logits(architecture, weights, image)[0])
    np.testing.assert_allclose(got, want / want.sum(), rtol=1e-3)


@pytest.mark.slow
def test_only_what_fits_is_trained(search: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    task = search.Task.of_digits("nucleo-f446re", 64 * 1024, 20.0, 10)
    trained = []
    own = search.trained
    monkeypatch.setattr(search, "trained", lambda *given: trained.append(given[0]) or own(*given))
    assert task.tried(search.Architecture(((128, 1), (128, 1), (128, 1)))) is None
    assert trained == []
    found = task.tried(search.Architecture(((48, 2), (64, 2))))
    assert found is not None and len(trained) == 1
    assert found.estimate.ram_bytes <= 64 * 1024 and found.estimate.milliseconds <= 20
    assert found.accuracy > 0.8
