"""Tables in the width that there is: whole columns go; no name, number or command is shortened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

_FEWEST = 2
"""Columns that stay whatever the width is."""
_BETWEEN = " + "
"""Between the numbers of a sum."""
_WIDEST_SHARE = 0.4
"""Share of the width that a word may take. A longer one goes on in the next line."""


class Shown(Table):
    """A table that knows which columns to go without first, by their headings."""

    def __init__(self, *given: Any, first_to_go: Sequence[str] = (), **named: Any) -> None:
        super().__init__(*given, **named)
        self.first_to_go = tuple(first_to_go)


def fit(table: Table, console: Console) -> None:
    """Make a table as wide as a console, in place; its caption names the columns that went.

    Columns that the table names go first, then pictures, which have no heading, then the last.
    """
    widest = int(_WIDEST_SHARE * console.width)
    least = {id(column): min(_words(column, console), widest) for column in table.columns}
    gone: list[Column] = []
    while len(table.columns) > _FEWEST and _width(table, least) > console.width:
        gone.append(table.columns.pop(_next_to_go(table)))
        for at, column in enumerate(table.columns):
            column._index = at
    if _width(table, least) > console.width or not table.columns:
        return
    spare = console.width - _width(table, least)

    widths = dict(least)
    for wanted in (_usual, _line):  # what most cells take, then what all do
        for column in sorted(table.columns, key=lambda one: wanted(one, console)):
            more = min(spare, max(0, wanted(column, console) - widths[id(column)]))
            spare -= more
            widths[id(column)] += more
    for column in table.columns:
        column.width = widths[id(column)]
        column.no_wrap, column.overflow = False, "fold"
    if named := ", ".join(filter(None, map(_heading, gone))):
        said = f"left out for want of width: {named}"
        table.caption = f"{table.caption}; {said}" if table.caption else said
        table.caption_justify = "right"


def _next_to_go(table: Table) -> int:
    headings = [_heading(column) for column in table.columns]
    named = [one for one in getattr(table, "first_to_go", ()) if one in headings]
    bare = [at for at, heading in enumerate(headings) if at and not heading]
    return headings.index(named[0]) if named else bare[-1] if bare else -1


def _size(cell: RenderableType, console: Console) -> Measurement:
    return Measurement.get(console, console.options.update(width=1 << 16), cell)


def _words(column: Column, console: Console) -> int:
    """Cells of its longest word; of its longest line where lines are not to break, as in numbers
    with a unit. Sums of several (`128 + 64 KiB`) may break between these.
    """
    if column.width is not None:
        return column.width

    def least(cell: RenderableType) -> int:
        number = column.justify == "right" and _BETWEEN not in str(cell)
        size = _size(cell, console)
        return size.maximum if column.no_wrap or number else size.minimum

    heading = _size(column.header, console).minimum
    return max(heading, *map(least, (*column.cells, column.footer)))


def _line(column: Column, console: Console) -> int:
    """Cells of its longest line."""
    cells = (column.header, *column.cells, column.footer)
    return column.width or max(_size(cell, console).maximum for cell in cells)


def _usual(column: Column, console: Console) -> int:
    """Cells of the lines that three of four of its rows take."""
    sizes = sorted(_size(cell, console).maximum for cell in column.cells)
    return column.width or (sizes[3 * len(sizes) // 4] if sizes else 0)


def _heading(column: Column) -> str:
    text = column.header
    plain = text.plain if isinstance(text, Text) else str(text)
    return " ".join(plain.split())


def _width(table: Table, least: dict[int, int]) -> int:
    """The least that a table takes, with what is around and between its columns."""
    return (
        sum(least[id(column)] for column in table.columns)
        + table._extra_width
        + sum(table._get_padding_width(at) for at in range(len(table.columns)))
    )
