"""The page of a sweep: models on boards, with the options that were combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from toolchain.boards import board as find_board
from toolchain.page.render import rendered
from toolchain.report.sweep import SweepRow

VERSION = 1


@dataclass(frozen=True)
class BoardColumn:
    """A board that was swept. `fitting` of its `models` run on it, with one of the options.

    `ram_bytes`, `flash_bytes`: what it has; 0 without a limit.
    """

    name: str
    title: str
    core: str
    clock_hz: int
    ram_bytes: int
    flash_bytes: int
    models: int
    fitting: int


@dataclass(frozen=True)
class SweepPage:
    """All that the page shows.

    made     when and by what, in a sentence
    file     of all rows; '' where the page is made of kept figures, without what changed
    changes  since the sweep before: fields of `sweep.changes.Changes`
    """

    version: int
    title: str
    command: str
    made: str
    boards: tuple[BoardColumn, ...]
    rows: tuple[SweepRow, ...]
    unfit: int
    failed: int
    file: str = ""
    cached: int = 0
    seconds: float = 0.0
    changes: Mapping[str, Any] | None = None


def swept_page(title: str, command: str, made: str, rows: Sequence[SweepRow]) -> SweepPage:
    """The page of rows, without what only the sweep knows."""
    unfit = sum(row.does_not_fit for row in rows)
    failed = sum(not row.ok for row in rows) - unfit
    boards = tuple(_column(name, rows) for name in dict.fromkeys(row.board for row in rows))
    return SweepPage(VERSION, title, command, made, boards, tuple(rows), unfit, failed)


def _column(name: str, rows: Sequence[SweepRow]) -> BoardColumn:
    board = find_board(name)
    of_board = [row for row in rows if row.board == name]
    return BoardColumn(
        name,
        board.title,
        board.core.name,
        board.clock_hz,
        board.ram_bytes,
        board.flash_bytes,
        len({row.model for row in of_board}),
        len({row.model for row in of_board if row.ok}),
    )


def sweep_html(page: SweepPage) -> str:
    """The page as one HTML file. Raises MissingToolError without the extra `[report]`."""
    return rendered("sweep", asdict(page), charts_used=("sweep",), scripts=("matrix",))
