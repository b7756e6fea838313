"""What `verify` says of an ONNX model: what was compared whole, and what operator by operator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from toolchain.cli import run
from toolchain.ops.spec import Array
from toolchain.reference import OnnxRuntime

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_qdq.onnx"
WORDS = ["verify", str(DIGITS), "-b", "host", "--runs", "3"]


@pytest.fixture
def drifted(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime's outputs of whole runs, moved as grown differences move them.

    What it computes of single tensors stays.
    """
    plain = OnnxRuntime.run

    def moved(self: OnnxRuntime, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (scores,) = plain(self, inputs)
        return ((scores + np.float32(5 / 256)).astype(scores.dtype),)

    monkeypatch.setattr(OnnxRuntime, "run", moved)


@pytest.mark.slow
def test_equal_outputs_need_no_other_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    (output,) = found["outputs"]
    assert output["max_difference"] == found["max_difference"] <= 1
    assert output["elements"] == found["elements"] == 30
    assert found["passed_whole"] and found["by_operators"] is None
    assert found["runs_beyond_tolerance"] == []


def test_both_comparisons_are_told(drifted: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    (output,), alone = found["outputs"], found["by_operators"]
    assert found["passed"] and not found["passed_whole"]
    assert found["runs_beyond_tolerance"] == alone["runs"] == [0, 1, 2]
    assert 4 <= output["max_difference"] <= 6 and output["unit"] == pytest.approx(1 / 255)
    assert alone["max_difference"] <= 1 and alone["elements"] > 3 * 500
    assert alone["tensors"] > 5


def test_the_text_says_the_same(drifted: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(WORDS) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "Compared whole, probabilities: " in text and "steps of 0.00392157; 1 is allowed." in text
    )
    assert "Compared operator by operator" in text and "feeds it, in runs 0, 1, 2, where" in text
    assert "It passes by its operators, not whole" in text
