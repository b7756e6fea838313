"""What has changed since a figure was run, as git tells: the rooms that it depends on."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from benchmarks.figures.figure import ROOT, Figure, Kept


def git(*arguments: str) -> str:
    """What git prints. Raises CalledProcessError where it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8"
    )
    return done.stdout.strip()


def paths(figure: Figure) -> tuple[str, ...]:
    """What a figure depends on: its rooms, and the modules of its benchmarks."""
    files = {file for line in figure.commands.values() for file in modules(line.split()[0])}
    return (*figure.rooms, *sorted(file.relative_to(ROOT).as_posix() for file in files))


def modules(benchmark: str) -> set[Path]:
    """The file of a benchmark, and those below `benchmarks` that it imports."""
    found: set[Path] = set()
    left = [f"benchmarks.{benchmark}"]
    while left:
        base = ROOT.joinpath(*left.pop().split("."))
        file = next(
            (f for f in (base.with_suffix(".py"), base / "__main__.py") if f.exists()), None
        )
        if file is None or file in found:
            continue
        found.add(file)
        left += _imported(file)
    return found


@cache
def _imported(file: Path) -> Sequence[str]:
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks"):
            found += [str(node.module), *(f"{node.module}.{name.name}" for name in node.names)]
    return found


def digests(names: Sequence[str]) -> Mapping[str, str]:
    """Git's digest of each path at HEAD. Raises CalledProcessError for one that HEAD lacks."""
    return dict(
        zip(names, git("rev-parse", *(f"HEAD:{name}" for name in names)).split(), strict=True)
    )


def uncommitted(figure: Figure) -> list[str]:
    """Paths that a figure depends on and that are not as HEAD has them."""
    lines = git("status", "--porcelain", "--", *paths(figure)).splitlines()
    return [line.split(maxsplit=1)[1] for line in lines]


def stale(figure: Figure, kept: Kept | None) -> str:
    """Why the data of a figure is not that of HEAD; nothing where it is."""
    if kept is None:
        return "never run"
    if dict(kept.commands) != dict(figure.commands):
        return "its commands have changed"
    now = digests(paths(figure))
    changed = [name for name, digest in now.items() if kept.rooms.get(name) != digest]
    if changed:
        return f"changed: {', '.join(changed)}"
    if not _known(kept.commit):
        return f"commit {kept.commit} is not in this history"
    return ""


def _known(commit: str) -> bool:
    try:
        git("merge-base", "--is-ancestor", commit, "HEAD")
    except subprocess.CalledProcessError:
        return False
    return True
