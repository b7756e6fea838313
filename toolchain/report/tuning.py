"""The rounds of tuning as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.table import Table

from toolchain.cost.basis import Basis
from toolchain.report.text import size
from toolchain.report.time import duration


class Round(Protocol):
    """One plan of the loop."""

    @property
    def predicted(self) -> int: ...

    @property
    def unit(self) -> str: ...

    @property
    def milliseconds(self) -> float | None: ...

    @property
    def basis(self) -> Basis: ...

    @property
    def measured_share(self) -> float: ...

    @property
    def arena_bytes(self) -> int: ...

    @property
    def operators(self) -> int: ...

    @property
    def measured_now(self) -> int: ...


def tuning_table(rounds: Sequence[Round]) -> Table:
    """A line for each plan: its cost, the basis of that, and the kernels timed after it."""
    table = Table(header_style="bold", title="tuning", title_justify="left")
    table.add_column("plan", justify="right")
    headings = ("one inference", "time", "change", "basis", "known share", "arena", "operators")
    for heading in (*headings, "then timed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, entry in enumerate(rounds):
        last = rounds[number - 1] if number else entry
        before = last.predicted if number and last.unit == entry.unit else 0
        table.add_row(
            str(number + 1),
            f"{entry.predicted:,} {entry.unit}",
            "-" if entry.milliseconds is None else duration(entry.milliseconds),
            f"{entry.predicted / before - 1:+.1%}" if before else "-",
            entry.basis.text,
            f"{entry.measured_share:.0%}",
            size(entry.arena_bytes),
            str(entry.operators),
            f"{entry.measured_now} kernels" if entry.measured_now else "-",
        )
    return table
