"""TFLite_Detection_PostProcess is the caller's work: the model is compiled up to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.detection import detector_bytes
from toolchain.cli import run
from toolchain.deployment.verification import verify_model
from toolchain.frontends import host_operators


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector_bytes())
    return path


def test_its_inputs_are_the_outputs(detector: Path) -> None:
    result = verify_model(detector, board="host", runs=4)
    plan = result.compiled.plan
    assert plan.graph.outputs == ("boxes_list", "scores")
    assert (result.differing, result.elements) == (0, 4 * 36 * 9)
    assert result.reference.startswith("LiteRT")


def test_it_is_named(detector: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (left,) = host_operators(detector)
    assert left.operator == "TFLite_Detection_PostProcess"
    assert left.reads == ("boxes_list", "scores")
    assert left.constants == ("anchors",)
    assert len(left.gave) == 4
    assert run(["plan", str(detector)]) == 0
    assert "is left to the caller" in capsys.readouterr().err
