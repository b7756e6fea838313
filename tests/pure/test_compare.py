"""`benchmarks.compare`: what counts as worse between the figures of two trees."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compare
from benchmarks.firmware import Row
from benchmarks.reach import ModelRow

REACH = ModelRow(
    "a.tflite", "passed", "0 of 9", "mps2-an500", 9, 0, arena_bytes=1000, instructions=10_000
)
FIRMWARE = Row("a", "mps2-an500", True, 1000, 1500, 4000, 9000, 10_000)
SPLIT = {
    "network": "a",
    "unsplit": {"auto": {"arena_bytes": 1000, "peak_bytes": 1000}},
    "split": {"auto": {"within": [{"budget": 0.05, "arena_bytes": 500, "seconds": 3.0}]}},
}


def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: Any, new: Any) -> int:
    """The exit code."""
    for name, data in (("old.json", old), ("new.json", new)):
        (tmp_path / name).write_text(json.dumps(data), encoding="utf-8")
    files = [str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    monkeypatch.setattr("sys.argv", ["compare", *files])
    return compare.main()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, 0),
        ({"arena_bytes": 999, "instructions": 9_000, "seconds": 7.0}, 0),
        ({"instructions": 10_050}, 0),
        ({"instructions": 10_051}, 1),
        ({"arena_bytes": 1001}, 1),
        ({"differing": 1}, 1),
        ({"elements": 8}, 1),
        ({"verdict": "refused"}, 1),
        ({"model": "b.tflite"}, 2),
    ],
    ids=str,
)
def test_rows_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], code: int
) -> None:
    old, new = ({"models": [vars(row)]} for row in (REACH, replace(REACH, **change)))
    assert compared(tmp_path, monkeypatch, old, new) == code


@pytest.mark.parametrize(
    ("change", "code"),
    [({}, 0), ({"matches": False}, 1), ({"arena_bytes": 1001}, 1), ({"ram_bytes": 1600}, 0)],
    ids=str,
)
def test_rows_of_firmware(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], code: int
) -> None:
    old, new = ([vars(row)] for row in (FIRMWARE, replace(FIRMWARE, **change)))
    assert compared(tmp_path, monkeypatch, old, new) == code


def test_rows_of_partition_are_known_by_network_and_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    larger = json.loads(json.dumps(SPLIT).replace("500", "501"))
    other = {**SPLIT, "network": "b"}
    old, new = {"networks": [SPLIT]}, {"networks": [other, larger]}
    assert compared(tmp_path, monkeypatch, old, {"networks": [other, SPLIT]}) == 0
    assert compared(tmp_path, monkeypatch, old, new) == 1
    assert "networks / a / split / auto / within / 0.05 / arena_bytes" in capsys.readouterr().out


def test_a_row_that_is_missing_is_worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [vars(FIRMWARE), vars(replace(FIRMWARE, model="b"))]
    assert compared(tmp_path, monkeypatch, old, old[:1]) == 1
    assert compared(tmp_path, monkeypatch, old[:1], old) == 0


def test_a_file_that_is_none_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torn.json").write_text("{", encoding="utf-8")
    files = [str(tmp_path / "torn.json"), str(tmp_path / "absent.json")]
    monkeypatch.setattr("sys.argv", ["compare", *files])
    assert compare.main() == 2
