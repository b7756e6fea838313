"""Boards side by side: which hold a model, with RAM, flash and milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from toolchain.boards import Board, MemoryKind
from toolchain.cli._console import output_console
from toolchain.report.width import Shown

if TYPE_CHECKING:
    from toolchain.deployment.fitting import Fit

_NUMBERS = {"clock", "RAM", "flash", "RAM needed", "flash needed", "time"}


_LEFT_OUT = ("checked against", "runs", "chip", "clock", "core", "RAM", "flash")
"""Columns that a narrow terminal goes without, the first one first."""


def table_of(*headings: str) -> Shown:
    """An empty table of boards."""
    table = Shown(header_style="bold", first_to_go=_LEFT_OUT)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in _NUMBERS else "left")
    return table


def described(board: Board) -> tuple[str, ...]:
    """Name, chip, core, clock, RAM and flash of a board."""
    return (
        escape(board.name),
        escape(board.chip.title),
        board.core.name,
        f"{board.clock_hz // 10**6} MHz" if board.clock_hz else "-",
        _sizes(board, MemoryKind.RAM),
        _sizes(board, MemoryKind.FLASH),
    )


def _sizes(board: Board, kind: MemoryKind) -> str:
    """Sizes of the banks of a kind that may be used."""
    sizes = [m.size_bytes for m in board.memories if m.kind is kind and m.holds]
    mebi = all(size % (1 << 20) == 0 for size in sizes)
    listed = " + ".join(f"{size >> (20 if mebi else 10)}" for size in sizes)
    return f"{listed} {'MiB' if mebi else 'KiB'}" if sizes else "-"


def fits_json(results: Sequence[Fit]) -> list[dict[str, Any]]:
    """A row for each board."""
    return [
        {
            "name": fit.board.name,
            "core": fit.board.core.name,
            "fits": not fit.why_not,
            "why_not": fit.why_not or None,
            "ram_bytes": fit.need.ram_bytes if fit.need else None,
            "flash_bytes": fit.need.flash_bytes if fit.need else None,
            "cycles": fit.cycles if fit.need else None,
            "milliseconds": fit.milliseconds if fit.need else None,
            "split": fit.split,
        }
        for fit in results
    ]


def print_fits(results: Sequence[Fit], model: str) -> None:
    """The boards that hold a model, and why the others do not."""
    table = table_of("board", "core", "clock", "RAM", "flash", "RAM needed", "flash needed", "time")
    for fit in results:
        name, _, *others = described(fit.board)
        if fit.need is not None:
            needs = [f"{n / 1024:,.1f} KiB" for n in (fit.need.ram_bytes, fit.need.flash_bytes)]
            table.add_row(name, *others, *needs, f"{fit.milliseconds:,.2f} ms")
    console = output_console()
    console.print(table)
    refused = [fit for fit in results if fit.why_not]
    console.print(
        f"{len(results) - len(refused)} of {len(results)} boards hold {model}; RAM, flash and "
        "time are estimated, as `thimble plan` does, RAM with copies of constants and code.",
        highlight=False,
    )
    for fit in refused:
        console.print(f"{fit.board.name}: {escape(fit.why_not)}", highlight=False)
