"""A pipeline with firmware on an emulated board as a stage, against the whole model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolchain.cli import run
from toolchain.edgetpu import pipeline
from toolchain.edgetpu.run.backends import devices_of
from toolchain.edgetpu.run.folder import read_folder
from toolchain.edgetpu.run.profile import profile_of
from toolchain.errors import InputError

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"


@pytest.mark.parametrize(
    ("name", "place", "sticks"), [("netduinoplus2", "first", "2"), ("mps2-an386", "last", "1")]
)
def test_the_pipeline_computes_what_the_model_does(
    name: str, place: str, sticks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages, whole = tmp_path / "stages", tmp_path / "whole"
    command = ["edgetpu", "split", str(DIGITS), "-n", sticks, "--mcu", name, "--link", "1MB/s"]
    assert run([*command, "--mcu-stage", place, "-o", str(stages), "--quiet"]) == 0
    assert run(["edgetpu", "split", str(DIGITS), "-n", "1", "-o", str(whole), "--quiet"]) == 0
    results = []
    for folder in (stages, whole):
        out = tmp_path / "results.npz"
        frames = ["--frames", "3", "--seed", "5", "--backend", "cpu"]
        assert run(["edgetpu", "run", str(folder), *frames, "-o", str(out), "--quiet"]) == 0
        with np.load(out) as found:
            results.append([found[key].tobytes() for key in found.files])
    assert results[0] == results[1]
    read = read_folder(stages)
    assert read.mcu == (0 if place == "first" else read.stages - 1)
    assert read.sticks == read.stages - 1
    assert devices_of(None, read)[read.mcu] == name
    compiled: list[str] = []
    monkeypatch.setattr(
        pipeline.compiler, "compile_stages", lambda _, parts: compiled.append(parts[0].file)
    )
    pipeline.compile_folder(read)
    assert len(compiled) == read.sticks
    with pytest.raises(InputError, match="on a microcontroller"):
        profile_of(read, "cpu", [1.0] * read.stages)
    assert run(["edgetpu", "profile", str(stages), "-o", str(tmp_path / "times.json")]) == 2
