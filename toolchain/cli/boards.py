"""`thimble boards`: the boards to compile for."""

from __future__ import annotations

from rich.table import Table

from toolchain.boards import Board, boards
from toolchain.cli._console import output_console
from toolchain.cli._json import JsonOption, write_json
from toolchain.report.text import round_size


def command(json: JsonOption = None) -> None:
    """List the boards: core, clock, RAM, flash, and where each has run.

    A board is a folder under `boards/` and names its chip, a file in `boards/chips/`; the README
    says how to add one.
    """
    if json:
        write_json(json, {"boards": [_as_json(board) for board in boards().values()]})
    if json == "-":
        return
    table = Table(header_style="bold")
    for heading in ("board", "what", "core", "clock", "RAM", "flash", "runs"):
        table.add_column(
            heading, justify="right" if heading in {"clock", "RAM", "flash"} else "left"
        )
    for board in boards().values():
        table.add_row(
            board.name,
            board.title,
            board.core.name,
            f"{board.clock_hz // 10**6} MHz" if board.clock_hz else "-",
            round_size(board.ram_bytes) if board.ram_bytes else "-",
            round_size(board.flash_bytes) if board.flash_bytes else "-",
            _where_it_runs(board),
        )
    output_console().print(table)


def _where_it_runs(board: Board) -> str:
    if board.is_host:
        return "on this machine"
    if board.emulator:
        return "in QEMU"
    return "run on hardware" if board.ran_on_hardware else "not run on hardware"


def _as_json(board: Board) -> dict[str, object]:
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
