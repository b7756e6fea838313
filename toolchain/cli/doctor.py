"""`thimble doctor`: what is installed, what is missing, how to get it."""

from __future__ import annotations

from dataclasses import asdict, astuple, fields

import typer
from rich.markup import escape
from rich.table import Table

from toolchain.cli._console import note, output_console
from toolchain.cli._groups import grouped, option
from toolchain.cli._output import JsonOption, tell_json
from toolchain.device import udev
from toolchain.device.doctor import Finding, examine
from toolchain.edgetpu.run.interpreters import KNOWN, Combination
from toolchain.edgetpu.run.interpreters import finding as edge_tpu
from toolchain.report.width import Shown


@grouped
def command(
    *,
    install_udev: bool = option(
        False,
        "Print the rules that let you use debug probes and Edge TPUs without root, and write them "
        "to /etc/udev/rules.d; without the right to, say the command for it. Linux only.",
    ),
    json: JsonOption = None,
) -> None:
    """List what is installed, what is missing, and how to install it.

    Exits 1 if something is missing that compiling or emulating needs. Extras, and tools that only
    some boards need (flash tools), are listed but do not count.
    """
    if install_udev:
        if tell_json(json, {"file": str(udev.INSTALLED), "rules": udev.RULES.read_text()}):
            output_console().say(udev.RULES.read_text(), whole=True)
        udev.install()
        note(f"{udev.INSTALLED} is written: plug boards and sticks in again")
        return
    findings = (*examine(), edge_tpu())
    content = {"ready": _ready(findings), "findings": [_as_json(f) for f in findings]}
    if tell_json(json, {**content, "edge_tpu_known": [asdict(known) for known in KNOWN]}):
        table = Shown(header_style="bold", first_to_go=("for", "found"))
        for heading in ("", "what", "for", "found", "how to get it"):
            table.add_column(heading)
        for finding in findings:
            mark = "[green]ok[/]" if finding.found else "[red]no[/]" if finding.needed else "-"
            remedy = "" if finding.found else finding.remedy
            table.add_row(
                mark, escape(finding.what), finding.purpose, escape(finding.found), escape(remedy)
            )
        output_console().print(table)
        if any(finding.what == "Edge TPU" and finding.found for finding in findings):
            output_console().print(_known())
    if not _ready(findings):
        raise typer.Exit(1)


def _known() -> Table:
    """Versions of the Edge TPU's software that others ran together."""
    table = Table(title="Edge TPU: known to work together", header_style="bold")
    for field in fields(Combination):
        table.add_column(field.name)
    for known in KNOWN:
        table.add_row(*(escape(str(value)) for value in astuple(known)))
    return table


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
