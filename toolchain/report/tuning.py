"""The rounds of tuning as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.table import Table

from toolchain.report.text import size


class Round(Protocol):
    """One plan of the loop."""

    @property
    def predicted(self) -> int: ...

    @property
    def unit(self) -> str: ...

    @property
    def measured_share(self) -> float: ...

    @property
    def arena_bytes(self) -> int: ...

    @property
    def operators(self) -> int: ...

    @property
    def measured_now(self) -> int: ...


def tuning_table(rounds: Sequence[Round]) -> Table:
    """A line for each plan: its predicted cost, and what was measured after it."""
    table = Table(header_style="bold", title="tuning", title_justify="left")
    table.add_column("plan", justify="right")
    for heading in ("predicted", "change", "measured share", "arena", "operators", "then measured"):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, entry in enumerate(rounds):
        before = rounds[number - 1].predicted if number else 0
        table.add_row(
            str(number + 1),
            f"{entry.predicted:,} {entry.unit}",
            f"{entry.predicted / before - 1:+.1%}" if before else "-",
            f"{entry.measured_share:.0%}",
            size(entry.arena_bytes),
            str(entry.operators),
            f"{entry.measured_now} kernels" if entry.measured_now else "-",
        )
    return table
