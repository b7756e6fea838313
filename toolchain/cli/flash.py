"""`thimble flash`: put a compiled firmware on a real board."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from toolchain.cli._console import output_console, progress
from toolchain.cli._json import JsonOption, write_json
from toolchain.deployment import compiled_board
from toolchain.device.firmware import load_firmware
from toolchain.device.flash import choose, flash


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `thimble compile` wrote.")],
    runner: Annotated[
        str | None,
        typer.Option(help="Which tool; else the first installed one that the board's file names."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command line and run nothing.")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Flash a compiled firmware with openocd, pyocd, st-flash, STM32CubeProgrammer or dfu-util.

    Prints the tool's command line. An emulated board has nothing to flash: `thimble run` starts
    it. Not tried on hardware here.

    Example: `thimble flash out --runner openocd`
    """
    board = compiled_board(folder)
    chosen = choose(board, runner, installed=not dry_run)
    firmware = load_firmware(folder)
    line = shlex.join(chosen.command(firmware))
    if json != "-":
        output_console().print(line, markup=False, highlight=False, soft_wrap=True)
    if not dry_run:
        with progress() as step:
            step(f"flashing {board.name} with {chosen.name}")
            flash(firmware, runner)
    if json:
        write_json(
            json,
            {
                "board": board.name,
                "runner": chosen.name,
                "command": line,
                "flashed": not dry_run,
            },
        )
