"""The tutorials run as they stand: docs/tutorials/*.py.

Those that import PyTorch or TensorFlow are run by $THIMBLE_FRAMEWORKS, the Python of an environment
that has them (scripts/frameworks.sh makes one), or by this one if it has them.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.long import mostly_long

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
KEPT = [script for script in SCRIPTS if script.stem == "camera_rows"]
HEAVY = {"torch", "tensorflow", "keras"}
pytestmark = pytest.mark.skipif(
    shutil.which("qemu-system-arm") is None or shutil.which("arm-none-eabi-gcc") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def imported(script: Path) -> set[str]:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    found = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    found |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    return {name.partition(".")[0] for name in found}


def python_for(script: Path) -> str:
    lacking = {name for name in imported(script) & HEAVY if importlib.util.find_spec(name) is None}
    if not lacking:
        return sys.executable
    named = os.environ.get("THIMBLE_FRAMEWORKS", "")
    if not named:
        pytest.skip(f"needs {', '.join(sorted(lacking))}, or $THIMBLE_FRAMEWORKS")
    return named


@pytest.mark.parametrize("script", mostly_long(SCRIPTS, KEPT), ids=lambda script: script.stem)
def test_a_tutorial_ends_well(script: Path, tmp_path: Path) -> None:
    python = python_for(script)
    packages = [str(ROOT)]
    if python != sys.executable:  # what Thimble itself needs
        packages += [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        [python, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(packages), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.strip()


def test_every_tutorial_is_listed() -> None:
    page = (ROOT / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")
    assert SCRIPTS and all(f"]({script.name})" in page for script in SCRIPTS)
