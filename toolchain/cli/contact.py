"""`thimble contact`: the first visit to a board."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from toolchain.boards import board as find_board
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import grouped, option
from toolchain.cli._options import BoardOption, CmsisNnOption, PortOption, named_board
from toolchain.cli._output import JsonOption, tell_json
from toolchain.contact.archive import write_contact
from toolchain.contact.document import Contact, Outcome
from toolchain.contact.power.recorder import recorder_of
from toolchain.contact.run import SECONDS, STEPS, contact
from toolchain.contact.sticks import contact_sticks
from toolchain.contact.visit import Desk
from toolchain.errors import InputError
from toolchain.files.records import encode

_STEPS = ", ".join(step.name for step in STEPS)
_MARKS = {Outcome.OK: "[green]ok[/]", Outcome.FINDING: "[red]finding[/]", Outcome.SKIPPED: "-"}


@dataclass(frozen=True)
class _Reach:
    """How a board is reached."""

    port: PortOption = None
    runner: str | None = option(
        None, "Flashing tool; default: the first installed one of the board's file."
    )
    probe: str = option("", "Serial number of the debug probe, if several are plugged in.")


@dataclass(frozen=True)
class _Power:
    """Energy of the networks."""

    power: str = option(
        "",
        "Measure energy: a CSV file (time in s, current in A or power in W) that you record during "
        "the visit and export when asked to, or lpm01a:PORT, ST's X-NUCLEO-LPM01A.",
        unit="SOURCE",
    )
    volts: float = option(
        3.3,
        "With --power: the board's supply, where the file has current alone; an LPM01A's.",
        least=0.5,
        most=60,
    )


@dataclass(frozen=True)
class _Edge:
    """Edge TPUs, visited in place of a board."""

    sticks: bool = option(False, "Visit Coral's USB Accelerators instead of a board.")
    model: list[Path] | None = option(
        None,
        "With --sticks: an int8 .tflite file to run on them. May be repeated. Default: the bundled "
        "digits network.",
        unit="FILE",
    )


@grouped
def command(
    board: BoardOption = "",
    *,
    out: Path = option(
        Path("contact.zip"), "File to write: a zip of a JSON document and a page.", "-o"
    ),
    reach: _Reach,
    only: list[str] | None = option(
        None,
        f"Take this step alone, and what it needs: {_STEPS}. May be repeated.",
        unit="STEP",
    ),
    seconds: float = option(SECONDS, "Begin no step after so many seconds.", least=1),
    edge: _Edge,
    power: _Power,
    cmsis_nn: CmsisNnOption = None,
    json: JsonOption = None,
) -> None:
    """Visit a board for the first time: check it step by step, and write one file to send.

    Flashes firmware of its own, which overwrites what is on the board. Each step goes on where one
    before failed; what cannot be tried is left out with its reason. The file (one JSON document,
    and a page that shows it) holds no path, no serial number of a probe, and the chip's unique
    number only as a hash: send it, and `thimble cost import` takes it in. Nobody has run this on
    silicon here; an emulated board gives the same file.

    With --sticks it visits Coral's USB Accelerators: software, sticks before and after they have
    firmware, each alone, pairs in both orders, a pipeline of all; outputs equal to the processor's,
    time of each stage. Each run is a process that is killed where a stick hangs.

    With --power the step `networks` runs each network many times in a row, with a second of idling
    before and after, finds these runs in the recording, and says microjoules of a run. Nor has that
    been run on silicon.

    Exits 1 if a step has a finding; the file is written all the same.

    Example: `thimble contact --board nucleo-f446re -o contact.zip`
    """
    if edge.sticks and (board or only or reach != _Reach() or power != _Power()):
        raise InputError("--sticks visits Edge TPUs: it goes with --model, --seconds and -o alone")
    if edge.model and not edge.sticks:
        raise InputError("--model is for --sticks: a board gets networks of its own")
    with progress() as step:
        if edge.sticks:
            found = contact_sticks(edge.model or (), seconds=seconds, report=step)
        else:
            desk = Desk(
                find_board(named_board(board)),
                cmsis_nn_folder=cmsis_nn,
                recorder=recorder_of(power.power, power.volts) if power.power else None,
                **vars(reach),
            )
            found = contact(desk, only=tuple(only or ()), seconds=seconds, report=step)
    write_contact(found, out)
    if tell_json(json, {"file": str(out), **encode(found)}):
        console = output_console()
        console.print(_table(found))
        console.say(f"{_verdict(found)} {out} holds it all: send it.", whole=True)
    if found.of(Outcome.FINDING):
        raise typer.Exit(1)


def _table(found: Contact) -> Table:
    table = Table(header_style="bold")
    for heading in ("step", "", "what was found"):
        table.add_column(heading)
    for result in found.results:
        text = "\n".join(result.sentences)
        table.add_row(result.title, _MARKS[result.outcome], escape(text))
    return table


def _verdict(found: Contact) -> str:
    findings = len(found.of(Outcome.FINDING))
    left = len(found.of(Outcome.SKIPPED))
    return f"{findings} of {len(found.results)} steps have findings, {left} were left out."
