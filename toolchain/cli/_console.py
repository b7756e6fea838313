"""Consoles: results go to standard output, progress and errors to standard error."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table

from toolchain.boards import is_core
from toolchain.cli._quiet import is_quiet
from toolchain.cli._streams import STANDARD_OUTPUT
from toolchain.files.printable import printable
from toolchain.progress import Found
from toolchain.report.width import fit

if TYPE_CHECKING:
    from toolchain.memory.plan import Plan


_WIDTH_OF_A_FILE = 132


class Plain(Console):
    """Shows what is not seen as symbols: a terminal is not to obey the names in a file.

    With NO_COLOR set, text has no escape codes at all, also none for bold. Where the standard
    output cannot be written, the OSError names it.
    """

    def __init__(self, **named: Any) -> None:
        colours: Any = None if os.environ.get("NO_COLOR") else "auto"
        super().__init__(color_system=colours, **named)

    def print(self, *args: Any, **named: Any) -> None:
        for table in args:
            if isinstance(table, Table):
                fit(table, self)
        try:
            super().print(*args, **named)
        except OSError as error:
            if not self.stderr:
                error.filename = error.filename or STANDARD_OUTPUT
            raise

    def say(self, text: str, *, whole: bool = False) -> None:
        """Print a text as it is, without colours. `whole`: in one line, however long it is."""
        self.print(text, markup=False, highlight=False, soft_wrap=whole or None)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def output_console() -> Plain:
    """The console for results. Where it is no terminal it is as wide as COLUMNS says, else wide
    enough for tables.
    """
    console = Plain()
    if console.is_terminal:
        return console
    return console if os.environ.get("COLUMNS", "").isdigit() else Plain(width=_WIDTH_OF_A_FILE)


def error_console() -> Plain:
    """The console for progress and errors, on standard error."""
    return Plain(stderr=True, soft_wrap=True)


def note(text: str) -> None:
    """A line on standard error, which --quiet leaves out."""
    if not is_quiet():
        error_console().say(text)


def _note_core(core: str, ran_on: str) -> None:
    """A line that says where the C of a core without a board ran."""
    on_host = "on this machine, as plain C: no emulated board has such a core and memories"
    where = on_host if ran_on == "host" else f"in QEMU ({ran_on})"
    note(f"{core} is a core without a board: the model ran {where}.")


def note_stand_in(board: str, ran_on: str) -> None:
    """A line that says what ran in place of a board that is not here; none where it ran itself."""
    if is_core(board):
        _note_core(board, ran_on)
    elif ran_on != board:
        machine = ran_on.partition(":")[0]
        note(
            f"{board} is not plugged in: its C ran in QEMU on {machine}, with the clock and "
            f"memories of {board} ({ran_on}). --port names a board."
        )


def note_replaced(folder: Path, before: str, now: str) -> None:
    """A line where a build replaced one for another board. `before`: '' for none."""
    if before not in ("", now):
        note(f"{folder} held a build for {before}; it now holds one for {now}.")


def warn_of_plan(plan: Plan) -> None:
    """Print one line if the plan has operators that compute in float32, and one for each suspicion
    about its quantisation.
    """
    from toolchain.quantise.float_use import float_use
    from toolchain.report.suspicions import plan_warnings

    use = float_use(plan)
    for text in ((use.text,) if use else ()) + plan_warnings(plan):
        note(f"warning: {text}.")


def note_kept(board: str) -> None:
    """A line where plans for the board rest on what was measured on it before."""
    from toolchain.deployment.measurements import kept_line

    if line := kept_line(board):
        note(line)


class Steps:
    """A `Report` that shows the current step on the terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.is_shown = not progress.disable
        self._task = progress.add_task("", total=None)

    def __call__(
        self,
        text: str,
        done: int | None = None,
        total: int | None = None,
        found: Found = (),
    ) -> None:
        self._progress.update(self._task, description=text, completed=done, total=total)


@contextmanager
def progress(*, remaining: bool = False) -> Iterator[Steps]:
    """A spinner, with a bar if a total is known; nothing off a terminal, or with --quiet.

    `remaining`: and an estimate of the time that is left, for parts that take equally long.
    """
    console = error_console()
    estimate = [TextColumn("left:"), TimeRemainingColumn()] if remaining else []
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        *estimate,
        console=console,
        transient=True,
        disable=is_quiet() or not console.is_terminal,
    )
    with bar:
        yield Steps(bar)
