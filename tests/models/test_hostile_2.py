"""Files of `../shared/hostile2` that hung, or made other programs run: one message, exit code 2.

Names and damaged databases have tests where they are mended. The files lie beside the checkout.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from toolchain.cli import run

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "hostile2"
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no files at {FOLDER}")


def _refused(command: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    begin = time.process_time()
    code = run(command)
    assert time.process_time() - begin < 30
    err = capfd.readouterr().err
    assert code == 2 and err.count("error:") == 1 and "Traceback" not in err, err
    assert said in " ".join(err.split())


@pytest.mark.parametrize("name", ["bomb14", "bomb30"])
def test_subgraphs_that_call_each_other_again_and_again(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for command in ("plan", "verify"):
        model = str(FOLDER / f"{name}.tflite")
        _refused([command, model, "--board", "netduinoplus2"], "calls subgraph 1, which is", capfd)


def test_a_loop_without_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model, zero = str(FOLDER / "loop_endless.tflite"), ["--input", str(FOLDER / "zero.npy")]
    limited = [*zero, "--timeout", "1"]
    out = str(tmp_path / "out")
    assert run(["compile", model, "--board", "host", "--float", "-o", out]) == 0
    capfd.readouterr()
    _refused(["run", out, *limited], "did not end within 1 s, and was stopped", capfd)
    verify = ["verify", model, "--board", "host", "--float", "--runs", "0", *limited]
    _refused(verify, "did not end within 1 s, and was stopped", capfd)


def test_a_board_that_runs_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its title breaks out of CMake's comment; its chip's flags name a wrapper of gcc's."""
    shutil.copytree(FOLDER / "board", tmp_path / "board")
    monkeypatch.chdir(tmp_path / "board")
    compiling = ["compile", str(DIGITS), "--board", "./evil", "-o", str(tmp_path / "out")]
    exporting = ["export", str(DIGITS), "--for", "cmake", "--board", "./evil", "-o", "made"]
    for command in (compiling, exporting):
        _refused(command, "board.toml: title is", capfd)
    file = Path("evil/board.toml")
    lines = ['title = "fine"', *file.read_text(encoding="utf-8").splitlines()[1:]]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for command in (compiling, exporting):
        _refused(command, 'evilchip.toml: core: flags[4] is "-wrapper"', capfd)
    assert not list(tmp_path.rglob("PWN*"))
