"""`--quiet`, which every command takes: standard error has errors and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any

import typer

_WANTED = ContextVar("quiet", default=False)


def is_quiet() -> bool:
    """Whether the command that runs shall show neither progress nor notes."""
    return _WANTED.get()


@contextmanager
def hushed(wanted: bool) -> Iterator[None]:
    """Set `is_quiet` to `wanted` for one command."""
    token = _WANTED.set(wanted)
    try:
        yield
    finally:
        _WANTED.reset(token)


def _declared(
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="No progress and no notes; results and errors are still shown."
        ),
    ] = False,
) -> None:
    """The option as typer reads it."""


def quiet_option() -> Any:
    """The option, to be added to a command's parameters; its value is named `quiet`."""
    alone = typer.Typer(add_completion=False)
    alone.command()(_declared)
    return typer.main.get_command(alone).params[0]
