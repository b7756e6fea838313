"""The command `thimble`: one file per subcommand, found by its file; each holds one `command`.

Exit codes: 0 done; 1 the result is a failure (does not fit, does not match, a board at fault);
2 the input is bad or a tool is missing.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence

import typer

from toolchain.cli._console import error_console
from toolchain.errors import ThimbleError

_HELP = """Turn an int8 neural network into firmware for a microcontroller.

Start with `thimble plan MODEL` (does it fit?), then `thimble compile MODEL --board BOARD -o DIR`
(C and firmware), `thimble run DIR` (one inference), `thimble verify MODEL` (same bytes as the
reference?). `thimble doctor` says what is installed.
"""


def app() -> typer.Typer:
    """The typer application with every subcommand."""
    application = typer.Typer(
        name="thimble",
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        if not module.startswith("_"):
            loaded = importlib.import_module(f"{__name__}.{module}")
            if hasattr(loaded, "group"):
                application.add_typer(loaded.group, name=module)
            else:
                application.command(name=module)(loaded.command)
    return application


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Leaves through SystemExit with the exit code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; errors are printed, never a traceback."""
    console = error_console()
    try:
        typer.main.get_command(app())(
            args=None if arguments is None else list(arguments), prog_name="thimble"
        )
    except SystemExit as leaving:  # how click ends, also after a usage error
        return leaving.code if isinstance(leaving.code, int) else 0
    except ThimbleError as error:
        console.print("error:", style="bold red", end=" ")
        console.print(str(error), markup=False, highlight=False)
        return error.exit_code
    return 0
