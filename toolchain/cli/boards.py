"""`thimble boards`: the boards to compile for, and boards of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from toolchain.boards import (
    Board,
    board_files_by_name,
    boards,
    checked,
    core_names,
    header_of,
    invalid_boards,
    starting_board,
)
from toolchain.boards import board as find_board
from toolchain.cli import _completion as completion
from toolchain.cli._command import Command
from toolchain.cli._console import note, output_console, progress
from toolchain.cli._fits import described, fits_json, print_fits, table_of
from toolchain.cli._groups import REQUIRED, argument, grouped, option
from toolchain.cli._output import JsonOption, tell_json
from toolchain.errors import InputError
from toolchain.files import write_file
from toolchain.report.text import round_size
from toolchain.resources import BOARDS

group = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")

ForOption = Annotated[
    Path | None,
    typer.Option(
        "--for",
        metavar="MODEL",
        help="List the boards that hold this model, with RAM, flash and milliseconds, the cheapest "
        "core first; and why the others do not hold it.",
        autocompletion=completion.models,
    ),
]


@group.callback()
@grouped
def listing(context: typer.Context, json: JsonOption = None, model: ForOption = None) -> None:
    """List the boards, or those that hold a model; make and check your own boards.

    The list has core, clock, banks of RAM and flash, where each board has run, and the header of
    ST's with which its chip's numbers were compared. A board is a folder with a `board.toml`, which
    names its chip. Your own boards are found by their path (`--board path/to/board.toml`), or by
    name in the folders of `$THIMBLE_BOARDS` and in `~/.config/thimble/boards`. `thimble boards new`
    writes a file to begin with; `thimble boards check` prints its clocks.
    """
    if context.invoked_subcommand is not None:
        if json or model:
            raise InputError("--json and --for are of the list: leave out the subcommand")
        return
    if model is not None:
        _list_for(model, json)
        return
    if not tell_json(json, {"boards": [_as_json(board) for board in boards().values()]}):
        return
    table = table_of("board", "chip", "core", "clock", "RAM", "flash", "runs", "checked against")
    for board in boards().values():
        header = header_of(board.chip) or "-"
        table.add_row(*described(board), _where_run(board), header)
    output_console().print(table)
    output_console().say(
        f"Cores without a board, for chips of other makers (--chip): {', '.join(core_names())}."
    )
    last = checked()
    compared = " and ".join(
        f"{name} at {commit[:12]}" for name, commit in last.repositories.items()
    )
    output_console().print(f"Headers of {compared}, compared on {last.date}.", highlight=False)
    for name, wrong in invalid_boards().items():
        note(f"warning: board {name} is left out: {wrong}")


def _list_for(model: Path, json: str | None) -> None:
    from toolchain.deployment.fitting import fits
    from toolchain.planning.options import PlanOptions

    targets = [board for board in boards().values() if not board.is_host]
    with progress() as step:
        results = fits(model, targets, PlanOptions(), step)
    if tell_json(json, {"model": str(model), "boards": fits_json(results)}):
        print_fits(results, model.name)


@group.command(cls=Command)
@grouped
def new(
    name: str = argument("NAME", "The board's name: a new folder."),
    chip: str = option(REQUIRED, "Its chip, or part number.", complete=completion.chips),
    out: Path = option(Path("boards"), "Where to make the folder.", "-o", unit="DIR"),
) -> None:
    """Write a commented `board.toml` for a chip, at its highest clock, to change and keep.

    Example: `thimble boards new greenhouse --chip STM32F411CE`, then change the pins in
    `boards/greenhouse/board.toml`, then `thimble boards check boards/greenhouse`.
    """
    file = out / name / "board.toml"
    text = starting_board(name, chip)
    if file.exists():
        raise InputError(f"{file} is there already: it is yours, so it stays as it is")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, text)
    find_board(str(file.absolute()))
    output_console().print(f"Written to {escape(str(file))}. Change the lines that say CHANGE.")


@group.command(cls=Command)
@grouped
def check(
    names: list[str] = argument(
        "BOARD", "Boards, paths of a board.toml, or folders with one.", complete=completion.boards
    ),
    json: JsonOption = None,
) -> None:
    """Check boards: clocks, limits of the chip, memories, serial port; say what follows.

    An error names the field that is wrong and the limit (exit code 2).
    """
    from toolchain.device.flash import runners

    chosen = [find_board(name) for name in names]
    tools = {board.name: [runner.name for runner in runners(board)] for board in chosen}
    if not tell_json(json, {"boards": [{**_as_json(b), **_following(b)} for b in chosen]}):
        return
    for board in chosen:
        table = Table(title=escape(board.name), show_header=False)
        table.add_row("chip", escape(f"{board.chip.title}, {board.core.name}"))
        for what, clock_hz in _following(board)["clocks_hz"].items():
            table.add_row(f"clock of {what}", f"{clock_hz:,} Hz")
        for memory in board.memories:
            kinds = ", ".join(sorted(content.value for content in memory.holds)) or "unused"
            waits = f", {memory.timing.read_cycles} wait cycles" if memory.timing else ""
            table.add_row(
                f"{memory.kind.value} {memory.name}",
                f"0x{memory.origin:08X}, {round_size(memory.size_bytes)}: {kinds}{waits}",
            )
        if board.uart is not None:
            pins = f", {board.uart.tx} and {board.uart.rx}" if board.uart.tx else ""
            table.add_row("serial port", f"{board.uart.name}{pins}, {board.uart.baud:,} baud")
        table.add_row("flashed with", ", ".join(tools[board.name]) or "nothing")
        output_console().print(table)


def _following(board: Board) -> dict[str, Any]:
    """Values that follow from a board's file."""
    return {
        "clocks_hz": dict(board.clocks_hz),
        "uart": None if board.uart is None else board.uart.name,
    }


def _where_run(board: Board) -> str:
    if board.is_host:
        return "here"
    if board.emulator:
        return "in QEMU"
    if board.ran_on_hardware:
        return "on hardware"
    return "not on hardware" if _is_ours(board) else "yours"


def _is_ours(board: Board) -> bool:
    file = board_files_by_name().get(board.name)
    return file is not None and file.is_relative_to(BOARDS)


def _checked_as_json(board: Board) -> dict[str, str] | None:
    header = header_of(board.chip)
    last = checked()
    return {"header": header, "date": last.date, **last.repositories} if header else None


def _as_json(board: Board) -> dict[str, Any]:
    return {
        "name": board.name,
        "title": board.title,
        "chip": board.chip.name,
        "core": board.core.name,
        "clock_hz": board.clock_hz,
        "ram_bytes": board.ram_bytes,
        "flash_bytes": board.flash_bytes,
        "emulated": board.emulator is not None,
        "ran_on_hardware": board.ran_on_hardware,
        "checked_against": _checked_as_json(board),
        "memories": [
            {
                "name": m.name,
                "origin": m.origin,
                "bytes": m.size_bytes,
                "kind": m.kind.value,
                "holds": sorted(c.value for c in m.holds),
                "access_cycles": m.access_cycles,
            }
            for m in board.memories
        ],
    }
