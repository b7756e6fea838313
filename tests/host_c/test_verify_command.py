"""`thimble verify` on this machine: what its verdict says of who judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.pure.test_judges import tile_file
from tests.support.tflite_writer import tflite_bytes
from toolchain.cli import run
from toolchain.ops import forms
from toolchain.planner import plan_model
from toolchain.reference import judges
from toolchain.reference.process import Runtime


def _verify(folder: Path, data: bytes) -> tuple[int, dict[str, object]]:
    file, report = folder / "model.tflite", folder / "report.json"
    file.write_bytes(data)
    command = ["verify", str(file), "-b", "host", "--runs", "3", "--json", str(report)]
    return run(command), json.loads(report.read_text())


def test_int16_sums_match(tmp_path: Path) -> None:
    graph = forms()["sum.int16"].sample(np.random.default_rng(4))
    code, report = _verify(tmp_path, tflite_bytes(graph))
    assert (code, report["passed"], report["independent"]) == (0, True, True)
    (judge,) = report["judges"]  # type: ignore[misc]
    assert judge["operators"] == ["SUM"]
    assert "uint8" in judge["why"]


def test_the_arena_is_the_plan_s_and_on_the_host_nothing_is_painted(tmp_path: Path) -> None:
    _, report = _verify(tmp_path, tile_file(2))
    planned = plan_model(tmp_path / "model.tflite", "host").arena.size_bytes
    assert report["arena_bytes"] == planned > 0
    assert report["touched"] is None


def test_thimble_never_judges_itself_silently(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """tflite-micro has no TILE, so it refuses what no other runtime is asked."""
    pytest.importorskip("tflite_micro")
    alone = judges.Rule(("TILE",), (), (Runtime.TFLITE_MICRO,), "only it is asked")
    monkeypatch.setattr(judges, "RULES", (alone, *judges.RULES))
    code, report = _verify(tmp_path, tile_file(2))
    assert (code, report["passed"], report["independent"]) == (2, True, False)
    said = " ".join("".join(capfd.readouterr()).split())
    assert "(not judged by an independent runtime)" in said
    assert "only by Thimble's own arithmetic: TILE (operator 0)" in said
    assert "tflite-micro" in said
