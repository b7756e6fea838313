"""The files of docs/ci: their commands parse; the emulated jobs run with the bundled model."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolchain.cli._commands import load
from toolchain.resources import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "docs" / "ci"
FILES = ("github-actions.yml", "gitlab-ci.yml")


def jobs(name: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The shell scripts of each job, and the variables."""
    yaml = pytest.importorskip("yaml")
    read: dict[str, Any] = yaml.safe_load((CI / name).read_text())
    if name.startswith("github"):
        scripts = {
            job: [step["run"] for step in of["steps"] if "run" in step]
            for job, of in read["jobs"].items()
        }
        return scripts, read["env"]
    return {job: read[job]["script"] for job in read["stages"]}, read["variables"]


def commands(scripts: list[str]) -> list[list[str]]:
    """The command lines of `thimble` in scripts."""
    text = "\n".join(scripts).replace("\\\n", " ")
    return [shlex.split(line) for line in text.splitlines() if line.startswith("thimble ")]


@pytest.mark.parametrize("name", FILES)
def test_each_command_is_one(name: str) -> None:
    scripts, _ = jobs(name)
    assert set(scripts) == {"emulated", "boards"}
    lines = commands(scripts["emulated"])
    named = [words[1] for words in lines if words[1] != "doctor"]
    assert named == ["compile", "verify", "hil"]
    for _, command, *arguments in lines + commands(scripts["boards"]):
        with load(command).make_context(command, arguments) as context:
            assert context.params
    assert re.search("arena > .*flash > .*ms > .*differing > 0", str(lines))


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_the_emulated_job_runs(name: str, tmp_path: Path) -> None:
    """On one core of the three; the limits hold for the bundled model."""
    if not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")):
        pytest.skip("needs arm-none-eabi-gcc and qemu-system-arm")
    scripts, variables = jobs(name)
    (tmp_path / "models").mkdir()
    shutil.copy(EXAMPLES / "digits" / "digits_int8.tflite", tmp_path / "models" / "model.tflite")
    (tmp_path / "bench-qemu.toml").write_text('[[board]]\nboard = "netduinoplus2"\n')
    (tmp_path / "thimble").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m toolchain.cli "$@"\n')
    (tmp_path / "thimble").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **variables, "PATH": path, "PYTHONPATH": str(ROOT)}
    for script in scripts["emulated"]:
        if "apt-get" in script:
            continue  # what a runner installs is here
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "hil.xml").exists() and (tmp_path / "build" / "firmware").is_dir()
