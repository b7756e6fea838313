"""Models that keep state between runs, as they are shipped: frame for frame, with resets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolchain.deployment.compile import compile_model
from toolchain.deployment.run import deployed
from toolchain.deployment.verification import verify_model
from toolchain.frontends import load_model
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.reference import open_reference
from toolchain.reference.process import Runtime, RuntimeProcess, open_model

MODELS = Path(__file__).parents[2].parent / "shared" / "models"
NAMES = ("esphome_v2_okay_nabu", "esphome_v2_alexa")


def _model(name: str) -> Path:
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"needs {path.name} in ../shared/models")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_frames_equal_litert(name: str) -> None:
    result = verify_model(_model(name), board="host", runs=100)
    assert (result.differing, result.elements) == (0, 100)
    assert result.compiled.plan.arena.size_bytes < 6000


def test_svdf_with_int8_state_equals_tflite_micro() -> None:
    pytest.importorskip("tflite_micro")
    result = verify_model(_model("tflm_keyword_scrambled_8bit"), board="host", runs=40)
    assert (result.differing, result.elements) == (0, 80)
    assert "tflite-micro" in result.reference


def test_tflite_micro_s_lstm_is_not_litert_s() -> None:
    """Else it could judge where LiteRT refuses a file; Thimble's is LiteRT's."""
    pytest.importorskip("tflite_micro")
    file = _model("tflm_mnist_lstm_int8")
    data, graph, process = file.read_bytes(), load_model(file), RuntimeProcess()
    litert = open_model(process, Runtime.LITERT_REFERENCE, data)
    micro = open_model(process, Runtime.TFLITE_MICRO, data, 1)
    rng, differ, states = np.random.default_rng(3), 0, dict[str, Array]()
    for _ in range(40):
        x = rng.integers(-128, 128, graph.tensors[graph.inputs[0]].shape).astype(np.int8)
        (want,), (other,) = litert.run([x]), micro.run([x])
        np.testing.assert_array_equal(interpret(graph, [x], states)[0], want)
        differ += not np.array_equal(other, want)
    assert differ


def test_state_matters_and_a_reset_forgets_it(tmp_path: Path) -> None:
    model = _model("esphome_v2_okay_nabu")
    compile_model(model, "netduinoplus2", tmp_path / "out")
    rng = np.random.default_rng(3)
    frames = rng.integers(-128, 128, (40, 1, 3, 40)).astype(np.int8)
    reference = open_reference(model)
    wanted = [int(reference.run([frame])[0].item()) for frame in frames]
    with deployed(tmp_path / "out") as board:
        (name,) = (end.name for end in board.inputs)
        for _ in range(2):
            done = board.run_sequence([{name: frame} for frame in frames])
            (values,) = done.outputs.values()
            assert values.reshape(-1).tolist() == wanted
        board.clear_state()
        alone = board.run({name: frames[-1]}).outputs
    reference.restart()
    assert next(iter(alone.values())).item() == reference.run([frames[-1]])[0].item()
    assert len(set(wanted)) > 1, "the frames must tell whether state is kept"
