"""Completions in a shell: names of boards and chips, model files, values of options.

Typer makes the scripts (`thimble --install-completion`). At each Tab they run `thimble`, so nothing
here reads more than names of files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from toolchain.boards.places import CHIPS, CORES, board_files_by_name
from toolchain.resources import BOARDS

_MODELS = (".tflite", ".onnx")


def boards(incomplete: str) -> list[str]:
    """Boards whose name begins so."""
    return _beginning(incomplete, board_files_by_name())


def targets(incomplete: str) -> list[str]:
    """Boards, chips and cores."""
    cores = (file.stem for file in (BOARDS / CORES).glob("*.toml"))
    return boards(incomplete) + chips(incomplete) + _beginning(incomplete, cores)


def chips(incomplete: str) -> list[str]:
    """Chips whose name begins so."""
    return _beginning(incomplete, (file.stem for file in (BOARDS / CHIPS).glob("*.toml")))


def models(incomplete: str) -> list[str]:
    """Model files, and folders on the way to some; nothing where the shell alone knows more.

    A shell that is told nothing completes files itself, folders without a space after them.
    """
    typed, separator, begun = incomplete.rpartition("/")
    folder = typed + separator
    try:
        entries = list(os.scandir(folder or "."))
    except OSError:
        return []
    files = _beginning(begun, (e.name for e in entries if Path(e.name).suffix in _MODELS))
    if not files:
        return []
    shown = (e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    return [folder + name for name in (*files, *(f"{d}/" for d in _beginning(begun, shown)))]


def export_targets(incomplete: str) -> list[str]:
    """Targets of `thimble export`, by their files."""
    files = (Path(__file__).parent.parent / "export" / "targets").glob("[!_]*.py")
    return _beginning(incomplete, (file.stem.replace("_", "-") for file in files))


def one_of(*names: str) -> Callable[[str], list[str]]:
    """A completion for an option with these values."""

    def values(incomplete: str) -> list[str]:
        return _beginning(incomplete, names)

    return values


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
