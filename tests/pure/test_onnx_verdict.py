"""What `verify` says of an ONNX model: what was compared whole, and what operator by operator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.onnx_models import model_of
from toolchain.cli import run
from toolchain.frontends import Reading
from toolchain.frontends.onnx.reader import read_traced
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.reference import OnnxRuntime
from toolchain.reference.operator_differences import operator_differences

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


def _of_the_moment() -> bytes:
    """A product quantised when it runs, and an Abs."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["stored", "scale", "zero"]),
        helper.make_node("MatMulInteger", ["stored", "weights", "zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["reals"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["scale", "step"], ["scales"]),
        helper.make_node("Mul", ["reals", "scales"], ["product"]),
        helper.make_node("Abs", ["product"], ["y"]),
    ]
    weights = np.array([[1, 2], [3, -1], [5, 3], [2, 2]], np.int8)
    constants = {"weights": weights, "step": np.float32(0.1)}
    return model_of(nodes, {"x": [1, 4]}, ["y"], constants).SerializeToString()


def test_a_reference_that_moves_by_itself_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value halfway between two steps goes to the other one by its last bit."""
    plain = OnnxRuntime.run
    monkeypatch.setattr(
        OnnxRuntime, "run", lambda self, x: tuple(y * np.float32(1.001) for y in plain(self, x))
    )
    model, halves = tmp_path / "moment.onnx", tmp_path / "halves.npy"
    model.write_bytes(_of_the_moment())
    np.save(halves, np.array([[0, 255, 100.5, 51.5]], np.float32))
    words = ["verify", str(model), "-b", "host", "--runs", "0", "--float", "-i", str(halves)]
    assert run([*words, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reference_moves"] > 100
    assert found["by_operators"]["in_float"] and found["by_operators"]["tensors"] == 2
    assert found["by_operators"]["max_difference"] < 0.1
    (output,) = found["outputs"]
    assert output["snr_db"] == pytest.approx(60, abs=0.1)
    assert output["top_class"] == {"agreeing": 1, "runs": 1}


def test_operators_between_unknown_values_are_judged_together() -> None:
    """What is not cut is not named alone."""
    graph, stored = read_traced(_of_the_moment(), Path("moment.onnx"), Reading(allow_float=True))
    (name,) = stored
    x = np.array([[1, 2, 3, 4]], np.float32)
    product, y = interpret(replace(graph, outputs=(stored[name].tensor, *graph.outputs)), [x])
    spoiled = {name: product, "y": y + 1}
    alone = operator_differences(graph, stored, spoiled, [x], 0)
    assert (alone.worst, alone.together, alone.tensors) == (graph.ops[-1].name, 1, 2)
    both = operator_differences(graph, {}, spoiled, [x], 0)
    assert (both.worst, both.together, both.tensors) == (graph.ops[-1].name, 2, 1)
