"""Files that show the Pareto front, by format: each public module here holds one `FORMAT`.

The module's name is the ending of the files: `--plot front.csv` takes `csv.py`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import PurePath
from typing import TypeAlias

from toolchain.errors import InputError
from toolchain.report.front import FrontRow

DEFAULT = "svg"

Format: TypeAlias = Callable[[Sequence[FrontRow], str], str]
"""The text of a file, of the front's rows and a title."""


@cache
def names() -> tuple[str, ...]:
    """Names of all formats, sorted."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name[0] != "_"))


def format_of(file: str) -> Format:
    """The format that the ending of a file's name asks for; `DEFAULT` where it has none.

    Raises InputError, listing what there is, for any other ending.
    """
    name = PurePath(file).suffix.removeprefix(".").lower() or DEFAULT
    if name not in names():
        endings = ", ".join(f".{known}" for known in names())
        raise InputError(f"--plot {file}: no format is called {name!r}; endings are {endings}")
    chosen: Format = importlib.import_module(f"{__name__}.{name}").FORMAT
    return chosen
