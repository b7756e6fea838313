#!/usr/bin/env python3
"""Builds a release in dist/: wheel, sdist and their SHA-256 sums, tried before they are kept.

    scripts/release.py

The version is that of toolchain/version.py. The sdist is built from what is committed or not, the
wheel from the sdist; twine checks both. The wheel is installed with the extra `all` into a new
virtual environment, and README's commands run there, in a folder outside the checkout. pip is used
as this machine configures it.

Exits 1 where something is missing that a release has (`missing`): it is listed, and dist/ is then a
trial. Exits 1 without touching dist/ where a step fails.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from toolchain.version import DATE, DISTRIBUTION, __version__  # noqa: E402

MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"
README_S_MODEL = "model.tflite"
SUMS = "SHA256SUMS"
TOOLS = ("build==1.6.1", "twine==7.0.0")
"""What builds and checks packages, in `.venv-release`: nothing else in the project needs them."""
_FENCE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_IN_TEXT = re.compile(r"`(thimble [a-z ]+ model\.tflite[^`]*)`")


def commands(readme: str) -> list[str]:
    """The command lines of README that read a model, those in its text last."""
    lines = [line for block in _FENCE.findall(readme) for line in block.splitlines()]
    return [line for line in lines if line.startswith("thimble ")] + _IN_TEXT.findall(readme)


def missing(changelog: str, citation: str, status: str, tags: Sequence[str]) -> list[str]:
    """What a release lacks, each as a sentence: none where it is ready.

    `status`: of `git status --porcelain`; `tags`: those of the commit.
    """
    found, tag, heading = [], f"v{__version__}", f"## {__version__} ({DATE})"
    if heading not in changelog.splitlines():
        found.append(f"CHANGELOG.md has no line '{heading}': the section of this version is open")
    for name, value in (("version", __version__), ("date-released", DATE)):
        if f"{name}: {value}" not in citation.splitlines():
            found.append(f"CITATION.cff does not say '{name}: {value}'")
    if changed := status.splitlines():
        found.append(f"{len(changed)} files are not as committed, among them {changed[0][3:]}")
    if tag not in tags:
        found.append(f"the commit has no tag {tag}")
    return found


def sums(folder: Path) -> str:
    """A line for each file of a folder, as sha256sum writes and checks it."""
    files = sorted(file for file in folder.iterdir() if file.name != SUMS)
    return "".join(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)


def main() -> int:
    lacks = missing(
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        (ROOT / "CITATION.cff").read_text(encoding="utf-8"),
        _git("status", "--porcelain"),
        _git("tag", "--points-at", "HEAD").split(),
    )
    try:
        with tempfile.TemporaryDirectory(prefix="thimble-release-") as name:
            made = Path(name, "dist")
            _build(made)
            _try(next(made.glob("*.whl")), Path(name))
            (made / SUMS).write_text(sums(made), encoding="ascii")
            shutil.rmtree(ROOT / "dist", ignore_errors=True)
            shutil.copytree(made, ROOT / "dist")
    except subprocess.CalledProcessError as error:
        print(f"no release: {shlex.join(map(str, error.cmd))} failed", file=sys.stderr)
        return 1
    print(f"\ndist/ holds {DISTRIBUTION} {__version__}:")
    print((ROOT / "dist" / SUMS).read_text(encoding="ascii"), end="")
    for lack in lacks:
        print(f"not a release yet: {lack}")
    return 1 if lacks else 0


def _build(folder: Path) -> None:
    """Write sdist and wheel to `folder`, and check them."""
    tools = ROOT / ".venv-release"
    stamp = tools / ".done"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != " ".join(TOOLS):
        _environment(tools, TOOLS)
        stamp.write_text(" ".join(TOOLS), encoding="utf-8")
    python, epoch = tools / "bin" / "python", _git("log", "-1", "--format=%ct").strip()
    _run([python, "-m", "build", "--outdir", folder], ROOT, SOURCE_DATE_EPOCH=epoch)
    _run([python, "-m", "twine", "check", "--strict", *sorted(folder.iterdir())], ROOT)


def _try(wheel: Path, folder: Path) -> None:
    """Install the wheel beside nothing else, and run README's commands there."""
    _environment(folder / "venv", [f"{DISTRIBUTION}[all] @ {wheel.as_uri()}"])
    work = folder / "work"
    work.mkdir()
    shutil.copy(MODEL, work / README_S_MODEL)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in ("thimble --version", "thimble doctor", *commands(readme)):
        print(f"\n$ {line}", flush=True)
        program, *arguments = shlex.split(line)
        _run([folder / "venv" / "bin" / program, *arguments], work)


def _environment(folder: Path, requirements: Sequence[str]) -> None:
    """A new virtual environment with these and what they need."""
    print(f"installing {', '.join(requirements)}", flush=True)
    venv.create(folder, clear=True, with_pip=True, symlinks=True)
    _run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements], ROOT)


def _run(command: Sequence[str | Path], folder: Path, **variables: str) -> None:
    """Raises CalledProcessError where the command fails."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=folder, env=kept | variables, check=True)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
