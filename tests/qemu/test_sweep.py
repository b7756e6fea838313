"""`thimble sweep` of what runs on boards: rows of verify and profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.cli import run
from toolchain.resources import RUNTIME_C

DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"


def test_rows_of_verify_and_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", str(DIGITS), "-b", "netduinoplus2", "--do", "verify,profile", "--runs", "2"]
    file = tmp_path / "rows.sqlite"
    assert (
        run([*line, "-j", "1", "-o", str(file), "--fail-on", "differing > 0", "--json", "-"]) == 0
    )
    verified, profiled = json.loads(capsys.readouterr().out)["rows"]
    assert (verified["runs"], verified["differing"], verified["passed"]) == (2, 0, True)
    assert verified["elements"] == 20
    assert verified["latency"]["unit"] == "instructions"
    assert verified["predicted"]["milliseconds"] > 0
    assert profiled["latency"]["basis"] == "trace"
    assert profiled["latency"]["total"] == profiled["total"] > 0
    for row in (verified, profiled):
        assert row["ok"]
        assert not row["memory_estimated"]
        assert row["arena_bytes"] == 2368
        assert "differences" not in row
        assert "operators" not in row
