"""`thimble schedule`: its JSON, its exit codes, and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pure.test_neutral import GOOD
from toolchain.cli import run
from toolchain.schedule import names

MODEL = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "two.json"
    path.write_text(json.dumps(GOOD))
    return path


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(["schedule", *map(str, arguments), "--json", "-"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("name", names())
def test_every_scheduler_answers_with_the_ids_of_the_file(
    name: str, graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = answer(capsys, graph, "--scheduler", name, "--time-limit", 5)
    assert result["graph"] == "two"
    assert result["scheduler"] == name
    assert result["order"] == [0, 1]
    assert (result["peak_bytes"], result["lower_bound_bytes"]) == (18, 18)
    assert result["proved_optimal"] is True
    assert result["seconds"] >= 0


def test_a_model_is_ordered_with_its_scratch(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, MODEL, "--on-chip", 100, "-b", "netduinoplus2")
    assert result["proved_optimal"] is True
    assert len(result["order"]) == result["operators"]
    assert result["traffic"]["total_bytes"] > 0


def test_traffic_and_budget_are_reported(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, graph, "--on-chip", 18, "--budget", 18)
    assert result["traffic"]["total_bytes"] == 0
    assert result["budget_met"] is True


def test_the_table_says_what_is_proved(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", str(graph), "--on-chip", "10"]) == 0
    text = capsys.readouterr().out
    assert "18 B, proved optimal" in text
    assert "off-chip traffic with 10 B" in text


def test_a_budget_out_of_reach_exits_1(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", str(graph), "--budget", "17"]) == 1
    assert "no order does" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--scheduler", "magic"], "no scheduler is called 'magic'"),
        (["--budget", "-1"], "--budget is -1"),
        (["--on-chip", "-5"], "--on-chip is -5"),
        (["--time-limit", "-2"], "--time-limit is -2"),
    ],
)
def test_bad_options_exit_2(
    arguments: list[str], reason: str, graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["schedule", str(graph), *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_bad_files_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", str(tmp_path / "absent.json")]) == 2
    bad = tmp_path / "bad.json"
    bad.write_text('{"nodes": 1}')
    assert run(["schedule", str(bad)]) == 2
    assert "'nodes' must be a list" in capsys.readouterr().err
