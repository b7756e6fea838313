"""The option `--fail-on`."""

from __future__ import annotations

from typing import Annotated

import typer

FailOnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="Exit with 3 if this holds of the result: a field of --json, or arena, ram, flash, "
        "weights, ms, cycles, slowdown, differing, agreement, noise; then > >= < <= == or !=; then "
        'a number, in the field\'s unit (K, M, %, ms, dB). As "arena > 20K". May be repeated.',
    ),
]
