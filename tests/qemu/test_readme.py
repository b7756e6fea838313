"""What README, map and the page on Python show works as it stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "docs" / "from-python.md"
MAP = ROOT / "docs" / "map.md"


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PYTHON.read_text(), re.DOTALL)
    shutil.copy(ROOT / "examples" / "digits" / "digits_int8.tflite", tmp_path / "model.tflite")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "0"


def test_every_path_that_readme_and_map_name_is_there() -> None:
    text = (ROOT / "README.md").read_text() + MAP.read_text()
    named = re.findall(
        r"`((?:toolchain|runtime_c|templates|boards|examples|docs|tests)/[\w/.-]*)`", text
    )
    named += re.findall(r"\]\((docs/[\w.-]+)\)", text)
    assert named
    for path in named:
        if "<" not in path:
            assert (ROOT / path).exists(), path
