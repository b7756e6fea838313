"""`--json FILE|-`: the same result for programs. Files are written whole or not at all."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from toolchain.errors import InputError

JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the result as JSON to FILE, or to standard output (-) instead of the tables.",
    ),
]


def write_json(target: str, value: Mapping[str, Any]) -> None:
    """Write `value` to a file, whole or not at all, or to standard output for '-'.

    A device or pipe is written to, never replaced. Raises InputError where the file cannot be
    written.
    """
    write_text(target, json.dumps(value, indent=2) + "\n")


def write_text(target: str, text: str) -> None:
    """As `write_json`, for any text."""
    if target == "-":
        sys.stdout.write(text)
        return
    path = Path(target)
    try:
        if path.exists() and not path.is_file():
            path.write_text(text)
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(temporary).replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
