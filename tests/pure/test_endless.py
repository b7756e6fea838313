"""A loop without end on this machine ends in one message where Thimble runs a model itself.

What never ends runs in processes of its own: none of its threads stays behind in the tests'.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support.endless import endless_loop, endless_onnx_loop
from toolchain.cli import run
from toolchain.edgetpu.run.folder import MANIFEST, RATES_MANIFEST

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models with a loop; an input for which it never ends, and one for which it does."""
    made = tmp_path_factory.mktemp("endless")
    (made / "endless.tflite").write_bytes(endless_loop())
    (made / "endless.onnx").write_bytes(endless_onnx_loop())
    np.save(made / "zero.npy", np.zeros(1, np.float32))
    np.save(made / "one.npy", np.ones(1, np.float32))
    return made


def _refused(*command: object) -> None:
    words = [sys.executable, "-m", "toolchain.cli", *map(str, command), "--timeout", "0.5"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("error:") == 1
    said = " ".join(done.stderr.split())
    assert "did not end within 0.5 s, and was stopped" in said and "--timeout 2" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "method"), [("tflite", "MinMax"), ("onnx", "MinMax"), ("onnx", "Entropy")]
)
def test_calibration_stops(files: Path, tmp_path: Path, suffix: str, method: str) -> None:
    command = ["quantize", files / f"endless.{suffix}", "--method", method]
    out = tmp_path / f"out.{suffix}"
    _refused(*command, "-o", out, "--data", files / "zero.npy")
    assert not out.exists()
    assert run([*map(str, command), "-o", str(out), "--data", str(files / "one.npy")]) == 0


def test_a_pipeline_has_no_place_for_a_loop(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = str(files / "endless.tflite"), str(tmp_path / "stages")
    assert run(["edgetpu", "split", model, "--stages", "1", "-o", out]) == 2
    said = capsys.readouterr().err
    assert said.count("error:") == 1 and "calls a subgraph" in said


def _with_a_loop(folder: Path, manifest: str) -> None:
    """The folder of a split as a stranger may hand it on: its only stage never ends."""
    (stage,) = folder.glob("*.tflite")
    _replaced(stage, endless_loop(), (folder / manifest, folder / ".thimble.json"))


def _replaced(file: Path, data: bytes, lists: Sequence[Path]) -> None:
    """Other bytes in a file, and their hash in the lists of hashes, whose own follow."""
    known = hashlib.sha256(file.read_bytes()).hexdigest()
    file.write_bytes(data)
    for number, names in enumerate(lists):
        text = names.read_text()
        assert known in text
        changed = text.replace(known, hashlib.sha256(data).hexdigest()).encode()
        _replaced(names, changed, lists[number + 1 :])


@pytest.mark.slow
@pytest.mark.parametrize("rate", [(), ("--rate", "10")])
def test_a_stage_that_never_ends_is_left(files: Path, tmp_path: Path, rate: tuple[str]) -> None:
    folder = tmp_path / "stages"
    assert run(["edgetpu", "split", str(DIGITS), "--stages", "1", "-o", str(folder), *rate]) == 0
    _with_a_loop(folder, RATES_MANIFEST if rate else MANIFEST)
    given = ["-i", files / "zero.npy", "--backend", "cpu"]
    _refused("edgetpu", "run", folder, *given)
    if not rate:
        _refused("edgetpu", "profile", folder, "-o", tmp_path / "times.json", "--backend", "cpu")
