"""`--preprocess` on the command line: the files that it adds, and none without it."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import numpy as np
import pytest

from tests.support.sounds import RATE, clips, listener
from tests.support.tflite_writer import tflite_bytes
from toolchain.cli import run
from toolchain.deployment.folder import compiled_model
from toolchain.preprocess.audio_input import BoundAudio


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "listener.tflite"
    file.write_bytes(tflite_bytes(listener(3)))
    return file


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("given", [[], ["--preprocess", "audio:stride=2"]], ids=["without", "with"])
@pytest.mark.parametrize(
    "command",
    [["compile", "--library", "--board", "netduinoplus2"], ["export", "--for", "cmake"]],
    ids=["compile", "export"],
)
def test_it_adds_files_of_its_own(
    command: list[str], given: list[str], model: Path, tmp_path: Path
) -> None:
    first, *rest = command
    assert run([first, str(model), *rest, *given, "-o", str(tmp_path / "out")]) == 0
    added = {"listener_audio.h", "listener_audio.c", "thimble_features_s16.c", "thimble_signal.h"}
    assert names(tmp_path / "out") & added == (added if given else set())
    if given:
        (header,) = (tmp_path / "out").rglob("listener_audio.h")
        assert "#define LISTENER_AUDIO_STRIDE 2\n" in header.read_text()
    if first == "export":
        readme = (tmp_path / "out" / "README.md").read_text()
        assert ("- `listener_audio.h`: " in readme) == bool(given)


def test_run_hears_a_sound(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the features that were compiled in: the outputs are those of the features alone."""
    clip, out = clips()["speech"], tmp_path / "out"
    with wave.open(str(tmp_path / "clip.wav"), "wb") as target:
        target.setparams((1, 2, RATE, 0, "NONE", ""))
        target.writeframes(clip.astype("<i2").tobytes())
    words = ["--preprocess", "audio:stride=2", "--no-split", "-o", str(out)]
    assert run(["compile", str(model), "--board", "host", *words]) == 0
    compiled = compiled_model(out)
    source = compiled.source()
    assert isinstance(source, BoundAudio) and source.stride == 2
    np.save(tmp_path / "clip.npy", np.concatenate(list(source.windows(clip))))
    capsys.readouterr()
    found = []
    for file in ("clip.wav", "clip.npy"):
        assert run(["run", str(out), "-i", str(tmp_path / file), "--json", "-"]) == 0
        found.append(json.loads(capsys.readouterr().out)["outputs"])
    assert found[0] == found[1]


@pytest.mark.parametrize("command", [["compile", "--share-arena"], ["export", "--for", "cmake"]])
def test_it_is_for_one_model(
    command: list[str], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *rest = command
    other = tmp_path / "other.tflite"
    other.write_bytes(model.read_bytes())
    assert run([first, str(model), str(other), *rest, "--preprocess", "audio"]) == 2
    assert "--preprocess is for one model" in capsys.readouterr().err


def test_a_model_that_takes_no_sound_is_refused(model: Path, tmp_path: Path) -> None:
    words = ["compile", str(model), "-b", "netduinoplus2", "--library"]
    words += ["--preprocess", "audio:channels=7"]
    assert run([*words, "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
