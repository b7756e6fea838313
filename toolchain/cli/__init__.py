"""The command `thimble`: one file per subcommand, each with one `command` or `group`.

`_commands.py` lists them; a subcommand's file is imported when it is used.
`_leaving.py` explains the exit codes.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from toolchain.cli._commands import Commands
from toolchain.cli._failures import wants_json, with_error
from toolchain.cli._leaving import EXIT_CODES, EndedError, flush_output, leave
from toolchain.version import __version__

_HELP = f"""Turn an int8 neural network into firmware for a microcontroller.

Start with `thimble plan MODEL` (does it fit?), then `thimble compile MODEL --board BOARD -o DIR`
(C and firmware), `thimble run DIR` (one inference), `thimble verify MODEL` (same bytes as the
reference?). `thimble doctor` says what is installed. `thimble --install-completion` makes your
shell (bash, zsh, fish, PowerShell) complete commands, options, boards and model files.

Exit codes: {"; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())}.
"""


def app() -> typer.Typer:
    """The typer application with every subcommand."""
    application = typer.Typer(
        name="thimble",
        cls=Commands,
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(_before)
    return application


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thimble {__version__}")
        raise typer.Exit


def _before(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_say_version, is_eager=True
        ),
    ] = False,
) -> None:
    """The options before the subcommand."""


def main() -> None:
    """Entry point. Exits through SystemExit with the exit code."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names in files may hold any character
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())


def _open_what_is_closed() -> None:
    """A standard stream that was closed (`>&-`) leads nowhere.

    Else Python has none, and the next file that is opened is given its number.
    """
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; errors are printed, never a traceback.

    With `--json -`, standard output gets one object, which says the error, too.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not wants_json(given):
        return _run(given)[0]
    from toolchain.cli._output import write_text  # with much that --help does not need

    held = io.StringIO()
    with contextlib.redirect_stdout(held):
        code, failed = _run(given)
    written = held.getvalue()
    try:
        write_text("-", written if failed is None else with_error(written, failed, code))
    except (Exception, KeyboardInterrupt) as error:
        return leave(error, given)
    return code


def _run(given: Sequence[str]) -> tuple[int, BaseException | None]:
    """The exit code, and the error behind it where there is one."""
    failed: BaseException | None = None
    try:
        try:
            typer.main.get_command(app())(args=list(given), prog_name="thimble")
        except SystemExit as leaving:  # how click ends, also after a usage error
            code = leaving.code if isinstance(leaving.code, int) else 0
            failed = leaving.__context__ if hasattr(leaving.__context__, "format_message") else None
        else:
            code = 0
        flush_output()
    except (Exception, KeyboardInterrupt) as error:
        failed = error.error if isinstance(error, EndedError) else error
        return leave(error, given), failed
    return code, failed
