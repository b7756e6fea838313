"""Detectors to their end: TFLite_Detection_PostProcess in the firmware, judged by LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.detection import detector
from toolchain.deployment.verification import verify_model
from toolchain.errors import UnsupportedError
from toolchain.frontends import load_model
from toolchain.ir import DType
from toolchain.ops.detection.boxes import best_of, exp


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("regular", [False, True])
def test_a_detector_equals_litert(tmp_path: Path, legacy: bool, regular: bool) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector(legacy=legacy, regular=regular))
    result = verify_model(path, board="host", runs=8)
    assert (result.differing, result.elements) == (0, 8 * (40 + 10 + 10 + 1))
    assert result.reference.startswith("LiteRT")
    graph = result.compiled.plan.graph
    (end,) = (op for op in graph.ops if op.kind == "detection_postprocess")
    assert [graph.tensors[name].dtype for name in end.inputs[:2]] == [DType.INT8] * 2
    assert "dequantize" not in {op.kind for op in graph.ops}


def test_exp_in_double_is_within_a_unit_of_the_last_place() -> None:
    x = np.random.default_rng(0).uniform(-700, 700, 100_000)
    np.testing.assert_allclose(exp(x), np.exp(x), rtol=2.0**-51.5)
    assert exp(np.array([-800.0, 800.0])).tolist() == [0.0, np.inf]


def test_the_best_come_first() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        scores = rng.integers(0, 9, int(rng.integers(2, 30))).tolist()
        wanted = int(rng.integers(1, len(scores) + 1))
        found = best_of(scores, wanted)
        assert len(set(found)) == wanted
        assert [scores[i] for i in found] == sorted(scores, reverse=True)[:wanted]


def test_anchors_of_negative_size_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector(size=-0.1))
    with pytest.raises(UnsupportedError, match="an anchor has a negative size"):
        load_model(path)
