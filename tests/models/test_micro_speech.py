"""micro_speech's own recordings through the features and the model, as its firmware does."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

from tests.support.with_files import run_with_files
from toolchain import passes
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.frontends import load_model
from toolchain.kernels import cmsis_nn
from toolchain.ops.interpret import interpret
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.audio_input import AudioInput

MODELS = Path(__file__).parents[2] / "../shared/models"
FILE = MODELS / "tflm_micro_speech_int8.tflite"
LABELS = ("silence", "unknown", "yes", "no")
AUDIO = AudioInput(AudioFeatures(step_ms=20))
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason=f"{FILE.name} is not there")


def recording(word: str) -> np.ndarray:
    with wave.open(str(MODELS / f"samples/{word}_1000ms.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


@pytest.mark.parametrize("word", ["yes", "no"])
def test_a_word_is_recognised(word: str, tmp_path: Path) -> None:
    """By NumPy; and the C, given the samples in pieces, has the same scores."""
    target = board("host")
    plan = plan_model(FILE, "host", PlanOptions(fast=True))
    graph = passes.prepare(load_model(FILE)).graph
    samples = recording(word)
    bound = AUDIO.bound(graph.tensors[graph.inputs[0]], stateful=False)
    scores = [interpret(graph, [window])[0] for window in bound.windows(samples)]
    assert len(scores) >= 1
    assert LABELS[int(np.argmax(scores[0]))] == word
    sources = generate(plan, target.core, cmsis_nn.find(), name="wake", preprocess=AUDIO)
    (tmp_path / "sound.bin").write_bytes(np.int32(len(samples)).tobytes() + samples.tobytes())
    output = f"wake_output_{sources.outputs[0]}"
    flags = [f"-DOUTPUT={output}", f"-DOUTPUT_BYTES={output.upper()}_BYTES", "-DCLIP=16000"]
    run_with_files(target, sources, "heard.c", tmp_path, flags)
    got = np.fromfile(tmp_path / "outputs.bin", dtype=np.int8).reshape(-1, len(LABELS))
    np.testing.assert_array_equal(got, np.concatenate(scores))
