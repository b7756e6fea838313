"""The text form of a graph, against a golden file (`--update-goldens` rewrites it)."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.frontends import load_model
from toolchain.ir.printer import graph_text
from toolchain.passes import prepare

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
GOLDEN = ROOT / "tests" / "goldens" / "digits_int8.txt"


def test_digits_golden(request: pytest.FixtureRequest) -> None:
    graph = load_model(DIGITS)
    text = graph_text(graph) + "\nprepared\n\n" + graph_text(prepare(graph).graph)
    if request.config.getoption("--update-goldens"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
