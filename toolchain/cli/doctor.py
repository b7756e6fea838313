"""`thimble doctor`: what is installed, what is missing, how to get it."""

from __future__ import annotations

import typer
from rich.markup import escape
from rich.table import Table

from toolchain.cli._console import output_console
from toolchain.cli._json import JsonOption, write_json
from toolchain.doctor import Finding, examine


def command(json: JsonOption = None) -> None:
    """Say what is installed, what is missing, and how to get it.

    Exits 1 if something that compiling, emulating or verifying needs is missing; tools that only
    some boards need (flash tools) are listed but do not count.
    """
    findings = examine()
    if json:
        write_json(json, {"ready": _ready(findings), "findings": [_as_json(f) for f in findings]})
    if json != "-":
        table = Table(header_style="bold")
        for heading in ("", "what", "for", "found", "how to get it"):
            table.add_column(heading)
        for finding in findings:
            mark = "[green]ok[/]" if finding.found else "[red]no[/]" if finding.needed else "-"
            remedy = "" if finding.found else finding.remedy
            table.add_row(
                mark, escape(finding.what), finding.purpose, escape(finding.found), escape(remedy)
            )
        output_console().print(table)
    if not _ready(findings):
        raise typer.Exit(1)


def _ready(findings: tuple[Finding, ...]) -> bool:
    return all(finding.found or not finding.needed for finding in findings)


def _as_json(finding: Finding) -> dict[str, object]:
    return {
        "what": finding.what,
        "purpose": finding.purpose,
        "found": finding.found or None,
        "needed": finding.needed,
        "remedy": finding.remedy,
    }
