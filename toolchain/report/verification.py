"""Differing elements as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rich.markup import escape
from rich.table import Table


class _Difference(Protocol):
    @property
    def run(self) -> int: ...
    @property
    def output(self) -> str: ...
    @property
    def index(self) -> tuple[int, ...]: ...
    @property
    def board(self) -> float: ...
    @property
    def reference(self) -> float: ...


def difference_table(differences: Iterable[_Difference]) -> Table:
    """One row per differing element."""
    table = Table(header_style="bold")
    table.add_column("run", justify="right")
    table.add_column("output")
    table.add_column("element")
    table.add_column("board", justify="right")
    table.add_column("reference", justify="right")
    for d in differences:
        where = ", ".join(map(str, d.index))
        table.add_row(
            str(d.run), escape(d.output), f"[{where}]", f"{d.board:g}", f"{d.reference:g}"
        )
    return table
