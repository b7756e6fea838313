"""Where the files that are not Python are, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _place(name: str) -> Path:
    """`<package>/_data/<name>` in a wheel, `<checkout>/<name>` in a checkout."""
    in_wheel = _PACKAGE / "_data" / name
    return in_wheel if in_wheel.exists() else _PACKAGE.parent / name


TEMPLATES = _place("templates")
RUNTIME_C = _place("runtime_c")
BOARDS = _place("boards")
EXAMPLES = _place("examples")
LICENCE = _place("LICENSE")
