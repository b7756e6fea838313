"""Rows of a sweep as a table, and as JUnit's XML for a CI server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.etree import ElementTree

from rich.markup import escape
from rich.table import Table

from toolchain.files.printable import printable
from toolchain.report.width import Shown

_FAILURE = "result"
"""The kind of an error that is a failure to JUnit; others are its errors."""
_UNFIT = "does-not-fit"
"""The kind that JUnit gets as skipped: an answer, and no failure."""


@dataclass(frozen=True)
class SweepRow:
    """A row, as a table, JUnit and the page show it.

    name   the case, as in `Case.name`; `suite`: what is done, and where
    group  of its model, as a sweep's file names it; '' without one
    error  '' where all went well, or where it is not kept; `kind` is its class
    seconds  that it took; None where that is not kept
    best   no other row of this model needs less of RAM, flash or time without more of another
    """

    name: str
    suite: str
    model: str
    group: str
    board: str
    do: str
    options: str
    ok: bool
    cached: bool
    kind: str
    error: str
    arena: int | None
    ram: int | None
    flash: int | None
    milliseconds: float | None
    basis: str
    differing: int | None
    seconds: float | None
    best: bool

    @property
    def does_not_fit(self) -> bool:
        return self.kind == _UNFIT


def sweep_table(rows: Sequence[SweepRow]) -> Table:
    """One line for each row; a star at those that no other row of the model beats."""
    table = Shown(
        title="rows; *: none is better", header_style="bold", first_to_go=("do", "options")
    )
    for heading in ("model", "board", "do", "options"):
        table.add_column(heading)
    for heading in ("arena", "RAM", "flash", "ms"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in rows:
        memory = (row.arena, row.ram, row.flash)
        cells = ["-" if value is None else f"{value:,} B" for value in memory]
        time = "-" if row.milliseconds is None else f"{row.milliseconds:,.3f}"
        said = row.kind or ("*" if row.best else "")
        names = map(escape, (row.model, row.board, row.do, row.options))
        table.add_row(*names, *cells, time, said)
    return table


def junit(rows: Sequence[SweepRow], failed: Mapping[str, str]) -> bytes:
    """A suite for each work and board, a case for each row. `failed`: by name, which condition of
    --fail-on a row breaks.
    """
    root = ElementTree.Element("testsuites", name="thimble sweep")
    for suite, grouped in groupby(sorted(rows, key=lambda row: row.suite), lambda row: row.suite):
        of_suite = list(grouped)
        verdicts = [_verdict(row, failed.get(row.name, "")) for row in of_suite]
        tags = [tag for tag, _, _ in verdicts]
        node = ElementTree.SubElement(
            root,
            "testsuite",
            name=suite,
            tests=str(len(of_suite)),
            failures=str(tags.count("failure")),
            errors=str(tags.count("error")),
            skipped=str(tags.count("skipped")),
            time=f"{sum(row.seconds or 0.0 for row in of_suite):.3f}",
        )
        for row, (tag, kind, message) in zip(of_suite, verdicts, strict=True):
            case = ElementTree.SubElement(
                node,
                "testcase",
                classname=suite,
                name=printable(row.name),
                time=f"{row.seconds or 0.0:.3f}",
            )
            if tag:
                ElementTree.SubElement(case, tag, type=kind, message=printable(message))
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _verdict(row: SweepRow, broken: str) -> tuple[str, str, str]:
    """JUnit's element for a row, the class and the text of it; '' for one that went well."""
    if row.does_not_fit:
        return "skipped", row.kind, row.error
    if row.kind:
        return "failure" if row.kind == _FAILURE else "error", row.kind, row.error
    return ("failure", "gate", broken) if broken else ("", "", "")
