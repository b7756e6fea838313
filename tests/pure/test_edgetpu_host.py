"""A stage on the host, from the command line: plan, split, run, simulate, the C program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from toolchain.cli import run
from toolchain.edgetpu import pipeline
from toolchain.edgetpu.run import backends, compiler
from toolchain.edgetpu.run.folder import read_folder
from toolchain.edgetpu.run.profile import profile_of
from toolchain.errors import InputError, MissingToolError

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"


HOST = ("--host", "0.4", "--cache-mib", "0.004")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's host stage beside sticks: neither alone is as quick."""
    out = tmp_path_factory.mktemp("split") / "stages"
    command = ["edgetpu", "split", str(DIGITS), "-n", "2", *HOST, "-o", str(out)]
    assert run([*command, "--emit", "c", "--quiet"]) == 0
    return out


def test_the_plan_says_what_the_host_gains(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["edgetpu", "plan", str(DIGITS), "-n", "2", *HOST]
    assert run(command) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "is on the host, beside" in out and "proved optimal" in out
    assert run([*command, "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["host_stage"] is not None and told["proved_optimal"]
    assert told["period_ms"] < told["without_host"]["period_ms"]


def test_a_slow_host_takes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["edgetpu", "plan", str(DIGITS), "-n", "1", "--host", "0.001"]) == 0
    assert "The host takes no stage" in " ".join(capsys.readouterr().out.split())


def test_a_measured_host(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = tmp_path / "host.json"
    command = ["edgetpu", "profile", str(folder), "--backend", "cpu", "--fast", "--frames", "4"]
    assert run([*command, "-o", str(times)]) == 0
    assert run(["edgetpu", "plan", str(DIGITS), "-n", "2", "--host", str(times)]) == 0
    capsys.readouterr()
    content = json.loads(times.read_text())
    times.write_text(json.dumps(content | {"board": "delegate"}))
    assert run(["edgetpu", "plan", str(DIGITS), "-n", "2", "--host", str(times)]) == 2
    assert "measured on delegate" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--host", "0"], "a speed of 0.001 to 100,000"),
        (["--host", "nan"], "a speed of"),
        (["--host", "no.json"], "there is no file no.json"),
        (["--host", "5", "--objective", "params"], "planned for the period"),
        (["--host", "5", "--same-stage-children"], "give one of them"),
    ],
)
def test_what_is_refused(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["edgetpu", "plan", str(DIGITS), "-n", "1", *more]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_the_folder_knows_its_host(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = read_folder(folder)
    assert read.host is not None and read.sticks == read.stages - 1
    sticks = backends.devices_of(None, read)
    assert [device for device in sticks if device == backends.HOST] == ["host"]
    assert sticks[read.host] == "host"
    with pytest.raises(
        InputError, match=rf"{read.sticks} stages beside stage {read.host} \(host\)"
    ):
        backends.devices_of("usb:0," * read.stages + "usb:9", read)
    with pytest.raises(MissingToolError, match="one is on none"):
        backends.choose(read, "pycoral", sticks)
    with pytest.raises(InputError, match="times of two kinds"):
        profile_of(read, "delegate", [1.0] * read.stages)
    compiled: list[str] = []
    monkeypatch.setattr(compiler, "compile_stages", lambda _, parts: compiled.append(parts[0].file))
    pipeline.compile_folder(read)
    assert len(compiled) == read.sticks
    assert read.models[0].stages[read.host].file not in compiled


def test_it_runs_and_is_simulated(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["edgetpu", "simulate", str(folder), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["period_ms"] == pytest.approx(read_folder(folder).period_ms, rel=0.05)
    whole = tmp_path / "whole"
    assert run(["edgetpu", "split", str(DIGITS), "-n", "1", "-o", str(whole), "--quiet"]) == 0
    results = []
    for number, stages in enumerate((folder, whole)):
        out = tmp_path / f"{number}.npz"
        command = ["edgetpu", "run", str(stages), "--backend", "cpu", "--frames", "6"]
        assert run([*command, "-o", str(out)]) == 0
        found = np.load(out)
        results.append([found[name].tobytes() for name in found.files])
    assert results[0] == results[1]


def test_the_c_program_leaves_the_host_its_stage(folder: Path) -> None:
    text = (folder / "c" / "stages.c").read_text()
    assert text.count("true}") == 1 and text.count("false}") == read_folder(folder).sticks > 0
