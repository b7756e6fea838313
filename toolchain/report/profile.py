"""A profile for people: tables, and a picture whose widths are shares of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from toolchain.cost.basis import CYCLES, INSTRUCTIONS
from toolchain.report.text import operator_name, share
from toolchain.report.time import per_unit

_BAR_CELLS = 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_COLOURS = ("blue", "green", "magenta", "cyan", "yellow", "red")


@dataclass(frozen=True)
class Row:
    """One line of a table. `time_ms` is None for instructions, `instructions` on silicon."""

    name: str
    count: int
    time_ms: float | None
    instructions: int | None = None
    kind: str = ""
    spread: int = 0
    macs: int = 0
    moved_bytes: int = 0


def bar(part: float, whole: float, cells: int = _BAR_CELLS) -> str:
    """A bar, to an eighth of a cell."""
    eighths = round(8 * cells * part / whole) if whole else 0
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def profile_table(title: str, rows: Sequence[Row], total: int, unit: str, kinds: bool) -> Table:
    """One line per row: count, spread over the runs if there is any, time, share, MACs per unit,
    bytes moved, and instructions where the count is of cycles and they are known.
    """
    table = Table(title=title, header_style="bold", title_style="bold", title_justify="left")
    timed = any(row.time_ms is not None for row in rows)
    varies = any(row.spread for row in rows)
    counted = unit == CYCLES and any(row.instructions is not None for row in rows)
    table.add_column(title.split()[-1], no_wrap=True)
    if kinds:
        table.add_column("kind", no_wrap=True)
    for heading in (unit, *(["±"] if varies else []), *(["ms"] if timed else []), "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", width=_BAR_CELLS, no_wrap=True)
    last = [INSTRUCTIONS] if counted else []
    for heading in (f"MACs/{per_unit(unit)}", "bytes moved", *last):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            escape(operator_name(row.name)),
            *([row.kind] if kinds else []),
            f"{row.count:,}",
            *([f"{row.spread:,}"] if varies else []),
            *([f"{row.time_ms:.3f}" if row.time_ms is not None else "-"] if timed else []),
            share(row.count, total),
            bar(row.count, total),
            f"{row.macs / row.count:.2f}" if row.macs and row.count else "-",
            f"{row.moved_bytes:,}",
            *([_count(row.instructions)] if counted else []),
        )
    return table


def function_table(rows: Sequence[Row], total: int, unit: str) -> Table:
    """One line per function, most expensive first: count, time, share, instructions."""
    table = Table(
        title="per function", header_style="bold", title_style="bold", title_justify="left"
    )
    timed = any(row.time_ms is not None for row in rows)
    table.add_column("function", no_wrap=True)
    for heading in (unit, *(["ms"] if timed else []), "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", width=_BAR_CELLS, no_wrap=True)
    for heading in (INSTRUCTIONS, f"{unit}/{per_unit(INSTRUCTIONS)}"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            escape(row.name),
            f"{row.count:,}",
            *([f"{row.time_ms:.3f}" if row.time_ms is not None else "-"] if timed else []),
            share(row.count, total),
            bar(row.count, total),
            _count(row.instructions),
            f"{row.count / row.instructions:.2f}" if row.instructions else "-",
        )
    return table


@dataclass(frozen=True)
class Column:
    """A chip in `comparison_table`: its name, cycles of each operator and of all, milliseconds."""

    name: str
    counts: Sequence[int]
    total: int
    time_ms: float | None


def comparison_table(operators: Sequence[str], columns: Sequence[Column], unit: str) -> Table:
    """One line per operator with the count of each chip, then the whole and its time."""
    table = Table(
        title=f"{unit} of one inference",
        header_style="bold",
        title_style="bold",
        title_justify="left",
        show_footer=True,
    )
    table.add_column("operator", footer="the whole\nmilliseconds", no_wrap=True)
    for column in columns:
        time = "-" if column.time_ms is None else f"{column.time_ms:,.3f}"
        whole = f"{column.total:,}\n{time}"
        table.add_column(escape(column.name), footer=whole, justify="right", no_wrap=True)
    for number, name in enumerate(operators):
        table.add_row(
            escape(operator_name(name)), *(f"{column.counts[number]:,}" for column in columns)
        )
    return table


def _count(instructions: int | None) -> str:
    return "-" if instructions is None else f"{instructions:,}"


def flame(levels: Sequence[Sequence[tuple[str, int]]], width: int) -> Text:
    """Levels of (name, count) from the whole down; each level's pieces lie below their parents.

    Every level must sum to at most the first; the rest of it stays empty. A piece shows as much of
    its name as it has room for.
    """
    whole = sum(count for _, count in levels[0]) or 1
    picture = Text(no_wrap=True)
    for depth, level in enumerate(levels):
        done = 0
        for number, (name, count) in enumerate(level):
            start = round(width * done / whole)
            done += count
            cells = round(width * done / whole) - start
            label = f" {name} " if len(name) + 2 <= cells else name[: max(cells - 1, 0)]
            colour = _COLOURS[(number + depth) % len(_COLOURS)]
            picture.append(label[:cells].ljust(cells), style=f"black on {colour}")
        picture.append("\n")
    return picture
