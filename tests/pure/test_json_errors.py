"""`--json -`: one object on standard output, whatever happens, and the same exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.json_page import problems
from toolchain.cli import run

DIGITS = str(Path(__file__).parents[2] / "examples/digits/digits_int8.tflite")


_SECONDS = re.compile(r"\d+\.\d+ s ")
"""Of two runs they may differ."""


def _said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any, str]:
    """The exit code with `--json -`, the object, and what was said to people."""
    plain = run(arguments)
    said = capsys.readouterr().err
    code = run([*arguments, "--json", "-"])
    written = capsys.readouterr()
    assert code == plain
    assert _SECONDS.sub("", written.err) == _SECONDS.sub("", said)
    return code, json.loads(written.out), said


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "part"),
    [
        (["plan", "nosuch.tflite"], 2, "input", "nosuch.tflite"),
        (["plan", DIGITS, "--board", "nosuch"], 2, "input", "nosuch"),
        (["plan", DIGITS, "--nosuch"], 2, "usage", "--nosuch"),
        (["plan"], 2, "usage", "MODEL"),
        (["plan", DIGITS, "-b", "netduinoplus2", "--ram", "64"], 1, "does-not-fit", "64 bytes"),
        (["plan", DIGITS, "--max-slowdown", "0.05"], 2, "input", "percent sign"),
        (["cost", "import", "nosuch.json"], 2, "input", "nosuch.json"),
    ],
)
def test_errors(
    arguments: list[str], code: int, kind: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, result, said = _said(arguments, capsys)
    assert ended == code
    assert list(result) == ["json_version", "error"]
    assert problems("thimble plan", result) == []  # an error alone is the same for all
    assert (result["error"]["kind"], result["error"]["exit_code"]) == (kind, code)
    assert part in result["error"]["message"]
    assert part in said


def test_remedies_and_memories_are_fields(capsys: pytest.CaptureFixture[str]) -> None:
    _, result, said = _said(["plan", DIGITS, "-b", "netduinoplus2", "--ram", "64"], capsys)
    error = result["error"]
    assert all(remedy in said for remedy in error["remedies"])
    assert error["remedies"]
    assert "could help" not in error["message"]
    assert error["overflows"][0]["room_bytes"] == 64


def test_a_result_that_is_a_failure_is_one_object_with_both(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    buffers = tmp_path / "buffers.csv"
    buffers.write_text("id,lower,upper,size\n0,0,2,10\n1,1,3,10\n")
    code, result, _ = _said(["arena", str(buffers), "--capacity", "12"], capsys)
    assert code == 1
    assert result["error"]["exit_code"] == 1
    assert len(result) > 1


def test_done_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, result, _ = _said(["boards"], capsys)
    assert code == 0
    assert "error" not in result
