"""The files of fitted coefficients: a line for each kernel, as their tool writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.cost.fitted import COEFFICIENTS, coefficients_text

FILES = sorted(COEFFICIENTS.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_laid_out_as_it_would_be_written(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    data = json.loads(text)
    assert text == coefficients_text(data)
    lines = [line for line in text.splitlines() if line.startswith('  "')]
    assert [json.loads(f"{{{line.rstrip(',')}}}") for line in lines] == [
        {name: each} for name, each in data["kernels"].items()
    ]
