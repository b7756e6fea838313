"""`thimble contact --sticks` on sticks that are a delegate compiled here, each run a process.

The compiler of stages is a stand-in that copies them. Nothing ran on hardware.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.pure.test_edgetpu_compiler import NEWEST, stand_in
from tests.support.sticks import compile_delegate
from toolchain.bench.run import run_bench
from toolchain.cli import run as command
from toolchain.contact import sticks
from toolchain.contact.archive import read_contact
from toolchain.contact.document import Contact, Outcome
from toolchain.contact.sticks import contact_sticks
from toolchain.edgetpu.run import interpreters

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the loader finds the library")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_delegate(tmp_path_factory.mktemp("library"))


@pytest.fixture
def plugged(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sticks: one fresh from its box, one with its firmware."""
    pytest.importorskip("ai_edge_litert")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    monkeypatch.setenv("THIMBLE_STICKS", "usb:0 usb:1")
    monkeypatch.setenv("THIMBLE_STICKS_STATE", str(tmp_path))
    for name, vendor in (("usb:0", "1a6e"), ("usb:1", "18d1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "idVendor").write_text(f"{vendor}\n")
    return tmp_path


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = stand_in(tmp_path, NEWEST)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


def outcomes(found: Contact) -> dict[str, Outcome]:
    return {result.step: result.outcome for result in found.results}


@pytest.mark.long
@pytest.mark.usefixtures("plugged", "compiled")
def test_two_sticks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sticks.zip"
    assert command(["contact", "--sticks", "-o", str(file)]) == 0
    found = read_contact(file)
    assert set(outcomes(found).values()) == {Outcome.OK}
    said = {result.step: result for result in found.results}
    assert said["sticks"].values == {"before": 2, "after": 2, "woken": 1}
    alone, pairs = (said[step].values["runs"] for step in ("alone", "pairs"))
    assert [run["devices"] for run in alone] == [["usb:0"], ["usb:1"]]
    assert [run["devices"] for run in pairs] == [["usb:0", "usb:1"], ["usb:1", "usb:0"]]
    (whole,) = said["pipeline"].values["runs"]
    assert whole["unlike_first"] == 0 and whole["largest"] <= 2 * whole["usual"]
    assert len(whole["stages_ms"]) == 2 and whole["period_ms"] > 0
    assert str(tmp_path) not in str(found)
    capsys.readouterr()
    assert command(["cost", "import", str(file)]) == 2
    assert "of a visit to Edge TPUs" in capsys.readouterr().err


@pytest.mark.usefixtures("plugged", "compiled")
def test_the_bench_runs_pipelines(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "library", lambda: str(library))
    file = tmp_path / "bench.toml"
    file.write_text("[sticks]\ncount = 2\n")
    done = run_bench(file, soak=3, select="pipeline")
    assert (done.count("passed"), done.count("failed"), done.count("skipped")) == (1, 0, 1)


@pytest.mark.usefixtures("plugged", "compiled")
def test_a_stick_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sticks, "_RUN_SECONDS", 0.05)
    found = contact_sticks()
    said = next(result for result in found.results if result.step == "alone")
    assert said.outcome is Outcome.FINDING and "was killed: a stick hangs" in said.sentences[0]


@pytest.mark.usefixtures("plugged")
def test_without_sticks_or_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    found = contact_sticks()
    assert outcomes(found)["alone"] is Outcome.SKIPPED
    assert any("edgetpu_compiler is not installed" in text for text in found.results[0].sentences)
    monkeypatch.setenv("THIMBLE_STICKS", "")
    found = contact_sticks()
    assert outcomes(found)["sticks"] is Outcome.FINDING
    assert "no Edge TPU answers" in found.results[1].sentences[0]


def test_what_a_run_is_held_against() -> None:
    """Another stick's bytes, and how far LiteRT's kernels are from each other."""
    row = {"model": "m", "devices": ["usb:1"], "problem": "", "differing": 3, "largest": 5}
    assert "3 elements differ from the processor's by up to 5, as" in sticks._compared(
        {**row, "usual": 2}
    )
    assert sticks._compared({**row, "differing": 0}) == "every byte is the processor's"
    some, others = ({"y": np.array([values], np.int8)} for values in ([1, -128, 3], [1, 127, 4]))
    assert sticks._apart(some, others) == (2, 255)


def test_options_that_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["contact", "--sticks", "-b", "nucleo-f446re"]) == 2
    assert "--sticks visits Edge TPUs" in capsys.readouterr().err
    assert command(["contact", "-b", "nucleo-f446re", "--model", "x.tflite"]) == 2
    assert "--model is for --sticks" in capsys.readouterr().err
