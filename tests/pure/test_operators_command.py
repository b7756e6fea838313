"""`thimble ops` and the document made from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.cli import run
from toolchain.ops import specs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_document_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "--markdown", "-"]) == 0
    printed = capsys.readouterr().out
    assert printed == (ROOT / "docs" / "operators.md").read_text(), (
        "run `thimble ops --markdown docs/operators.md`"
    )
    for kind in specs():
        assert f"| {kind} |" in printed


def test_operators_are_found_by_any_of_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "SQUEEZE", "gemm", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [kind["name"] for kind in found["operators"]] == ["fully_connected", "reshape"]
    assert "Unsqueeze" in found["read_away"]["ONNX"]
    (fc, _) = found["operators"]
    assert fc["types"] == ["float32", "int16", "int8"] and fc["kernels"] and fc["limits"]


def test_the_table_shows_kernels_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "depthwise"]) == 0
    out = capsys.readouterr().out
    assert "DEPTHWISE_CONV_2D" in out and "CMSIS-NN" in out and "in place" in out


def test_an_unknown_name_is_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "quaternion"]) == 2
    assert "'quaternion'" in capsys.readouterr().err
