"""Where results go: `--json FILE|-`, `--html FILE|-`, and `--fail-on` what they say.

Files are written completely or not at all.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from toolchain.cli._groups import option
from toolchain.cli._streams import STANDARD_OUTPUT
from toolchain.errors import InputError
from toolchain.files import write_file
from toolchain.files.formats import JSON

RESULTS = "Results"
"""The heading of options that say where results go."""
JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        rich_help_panel=RESULTS,
        help="Write the result as JSON to FILE, or to standard output (-) instead of the tables.",
    ),
]


@dataclass(frozen=True)
class Output:
    """Where a result goes beside the tables, and the conditions on which the command fails."""

    fail_on: list[str] | None = option(
        None,
        "Exit with code 3 if this condition holds: a field of --json, or arena, ram, flash, "
        "weights, ms, cycles, slowdown, differing, agreement, noise; then > >= < <= == or !=; "
        'then a number in the field\'s unit (K, M, %, ms, dB). Example: "arena > 20K". May be '
        "repeated.",
        unit="CONDITION",
        panel=RESULTS,
    )
    json: JsonOption = None
    html: str | None = option(
        None,
        "Write the result as a page, too: one HTML file that opens in any browser. Needs "
        "the extra [report].",
        unit="FILE|-",
        panel=RESULTS,
    )

    @property
    def has_tables(self) -> bool:
        """Whether standard output is free for the tables."""
        return "-" not in (self.json, self.html)

    def check_apart(self, folder: Path) -> None:
        """Raise InputError if a file of these lies in `folder`, which is replaced as a whole."""
        check_apart(self.json, folder)
        check_apart(self.html, folder, "--html")


def check_apart(target: str | None, folder: Path, option: str = "--json") -> None:
    """Raise InputError if `option` names a file in `folder`, which is replaced as a whole."""
    if target is None or target == "-":
        return
    if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(folder)):
        raise InputError(
            f"{option} {target} lies in {folder}, which is replaced whole: name a file elsewhere"
        )


def numbered(value: Mapping[str, Any]) -> dict[str, Any]:
    """A document of --json with its version, which is its first field (docs/json.md)."""
    return {"json_version": JSON.version, **value}


def write_json(target: str, value: Mapping[str, Any]) -> None:
    """Write `value` to a file, completely or not at all, or to standard output for '-'. It is
    `numbered`.

    A device or pipe is written to, never replaced. Raises InputError if the file cannot be written.
    """
    write_text(target, json.dumps(numbered(value), indent=2) + "\n")


def tell_json(target: str | None, value: Mapping[str, Any]) -> bool:
    """Write `value` where --json asks for it. Whether standard output is free for the tables."""
    if target:
        write_json(target, value)
    return target != "-"


def write_text(target: str, text: str) -> None:
    """As `write_json`, for any text."""
    if target != "-":
        write_file(Path(target), text)
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {STANDARD_OUTPUT}: {error.strerror}") from error
