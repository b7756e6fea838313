"""`thimble flash`: write a compiled firmware to a real board."""

from __future__ import annotations

import shlex
from pathlib import Path

from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import argument, grouped, option
from toolchain.cli._output import JsonOption, write_json
from toolchain.deployment.folder import compiled_board
from toolchain.device.firmware import load_firmware
from toolchain.device.flash import bank_beside, choose, flash


@grouped
def command(
    folder: Path = argument("DIR", "Folder of `thimble compile`."),
    runner: str | None = option(
        None, "Tool to use. Default: the first tool of the board's file that is installed."
    ),
    probe: str = option("", "Serial number of the debug probe, if several are plugged in."),
    dry_run: bool = option(False, "Print the command lines and run nothing."),
    json: JsonOption = None,
) -> None:
    """Flash compiled firmware with openocd, pyocd, stlink, ST's programmer, dfu or drive.

    The tool reads the chip's identity first (again under reset if the chip does not answer). It
    writes nothing to another chip, and verifies what it has written. Each command line is printed.
    An emulated board needs no flashing: `thimble run` starts it. Not tried on hardware.

    Example: `thimble flash out --runner openocd`
    """
    board = compiled_board(folder)
    firmware = load_firmware(folder)
    beside = bank_beside(firmware)
    chosen = choose(board, runner, probe=probe, installed=not dry_run, beside=beside)
    console = output_console()

    def show(line: str) -> None:
        if json != "-":
            console.say(line, whole=True)

    if dry_run:
        for command in chosen.commands(firmware, folder):
            show(shlex.join(command))
    else:
        with progress() as step:
            step(f"flashing {board.name} with {chosen.name}")
            flash(firmware, chosen.name, probe, show)
    if json:
        lines = [shlex.join(command) for command in chosen.commands(firmware, folder)]
        write_json(
            json,
            {
                "board": board.name,
                "runner": chosen.name,
                "command": shlex.join(chosen.write(firmware)),
                "commands": lines,
                "flashed": not dry_run,
            },
        )
