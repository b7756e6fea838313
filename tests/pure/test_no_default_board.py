"""No board goes without saying: it is named, the last build's, or a few stand side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.cli import _planning, run
from toolchain.cli._options import named_board
from toolchain.deployment.folder import PLAN_FILE, last_board
from toolchain.resources import RUNTIME_C

DIGITS = str(RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite")
QUICK = ("--plan", "fast", "--no-split")


@pytest.mark.parametrize(
    "command",
    [
        ["compile", DIGITS, "-o", "OUT"],
        ["verify", DIGITS],
        ["verify", DIGITS, "-o", "OUT"],
        ["schedule", DIGITS],
        ["report", DIGITS, "-o", "-"],
        ["view", DIGITS],
        ["profile", DIGITS, "--kernels"],
        ["sweep", DIGITS],
    ],
    ids=lambda command: "-".join(word for word in command if "/" not in word),
)
def test_a_command_that_needs_a_board_asks_for_it(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert run([out if word == "OUT" else word for word in command]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "name a board: none is taken by default." in said
    assert "`thimble plan MODEL` for a few boards side by side" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [["--pareto"], ["--plot", "-"], ["--fail-on", "arena > 1K"]])
def test_choices_and_gates_are_of_one_board(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "absent.tflite", *option]) == 2
    assert f"{option[0]} is of one board: name it with --board" in capsys.readouterr().err


def test_a_folder_says_which_board_was_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, library = tmp_path / "out", ["--library", *QUICK, "-o", str(tmp_path / "out")]
    assert last_board(out) == ""
    assert run(["compile", DIGITS, "-b", "host", *library]) == 0
    assert "held a build" not in capsys.readouterr().err
    assert named_board("", out) == "host"
    assert f"For host, as the last build in {out}; --board names another." in " ".join(
        capsys.readouterr().err.split()
    )
    assert run(["compile", DIGITS, "-b", "netduinoplus2", *library]) == 0
    assert f"{out} held a build for host; it now holds one for netduinoplus2." in " ".join(
        capsys.readouterr().err.split()
    )
    assert named_board("host", out) == "host"
    (out / PLAN_FILE).write_text("no JSON")
    assert last_board(out) == ""


def test_plan_shows_a_few_boards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The JSON is that of the first, with a row for each."""
    monkeypatch.setattr(_planning, "FEW", ("nucleo-h743zi", "nucleo-g071rb"))
    few, one = tmp_path / "few.json", tmp_path / "one.json"
    assert run(["plan", DIGITS, *QUICK, "--json", str(few)]) == 0
    shown = capsys.readouterr().out
    assert "2 of 2 boards hold digits_int8.tflite" in shown
    assert "--board NAME plans for one in detail" in shown
    fields = json.loads(few.read_text())
    rows = {row["name"]: row for row in fields.pop("boards")}
    assert list(rows) == ["nucleo-g071rb", "nucleo-h743zi"]
    assert run(["plan", DIGITS, "-b", "nucleo-g071rb", *QUICK, "--json", str(one)]) == 0
    alone = json.loads(one.read_text())
    assert fields | {"seconds": 0} == alone | {"seconds": 0}
    row = rows["nucleo-g071rb"]
    assert (row["fits"], row["ram_bytes"]) == (True, alone["ram_bytes"])
    assert row["milliseconds"] == alone["latency"]["milliseconds"]
    capsys.readouterr()
    assert run(["plan", DIGITS, "--ram", "2K", "--json", "-"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [row["fits"] for row in told["boards"]] == [False, False]
    assert (
        told["error"]["message"] == "digits_int8.tflite fits none of nucleo-g071rb, nucleo-h743zi"
    )
