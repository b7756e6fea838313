"""`thimble cost`: known latencies of kernels, to share with a team; accuracy of predictions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from toolchain.boards import board as find_board
from toolchain.cli import _completion as completion
from toolchain.cli._command import Command
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import argument, grouped, option
from toolchain.cli._options import CmsisNnOption, PortOption
from toolchain.cli._output import JsonOption, tell_json
from toolchain.contact.archive import is_contact, read_contact
from toolchain.contact.residuals import Fit, compared, fit, kept, residuals
from toolchain.contact.sticks import BOARD as STICKS
from toolchain.contact.waits import WaitsFit, fitted_waits, lines_for_file
from toolchain.cost.database import Database
from toolchain.errors import InputError
from toolchain.timing.cost_check import Check, check_models, emulated_boards

group = typer.Typer(
    help="Known latencies of kernels, in cycles: list, export, import, check. `thimble profile` "
    "measures them on a board, or models them from a trace of an emulated one.",
    no_args_is_help=True,
)
_BoardFilter = Annotated[
    str,
    typer.Option("--board", "-b", help="Only this board.", autocompletion=completion.boards),
]


@group.command(name="list", cls=Command)
@grouped
def list_(board: _BoardFilter = "", json: JsonOption = None) -> None:
    """List the latencies that `thimble plan` uses instead of predictions, and what each rests on.

    *measured*: counted by the chip. *trace*: modelled from the instructions that an emulated board
    executed; used if nothing was measured, and until the timing models change.
    The latencies are in one SQLite file, $THIMBLE_MEASUREMENTS or in the user's cache.
    """
    if board:
        find_board(board)
    with Database() as database:
        rows = database.rows(board)
    measurements = [row.as_dict() for row in rows]
    if not tell_json(json, {"file": str(database.file), "measurements": measurements}):
        return
    console = output_console()
    for row in rows:
        console.say(
            f"{row.board:<16} {row.count:>13,} ±{row.spread:<6,} {row.unit:<12}  {row.basis:<8}  "
            f"{row.key.kernel}  {row.key.shape}",
            whole=True,
        )
    console.say(f"{len(rows)} measurements in {database.file}")


@group.command(cls=Command)
@grouped
def export(
    out: Path = argument("FILE", "JSON file to write."),
    board: _BoardFilter = "",
    json: JsonOption = None,
) -> None:
    """Write the measurements to a JSON file, for others to import."""
    with Database() as database:
        count = database.export(out, board)
    _say(json, out, count, f"{count} measurements written to {out}")


@group.command(name="import", cls=Command)
@grouped
def import_(
    file: Path = argument("FILE", "A file from `thimble cost export`, or from `thimble contact`."),
    keep: bool = option(True, "Keep it; --no-keep shows a contact file only.", "--keep/--no-keep"),
    json: JsonOption = None,
) -> None:
    """Import the measurements of a file that are new or newer, all of them or none.

    A contact file is shown first: how far the formula is off by kernel, and a fit of it to the
    file (a factor for the core and each kernel, cycles for a call) with its error before and after
    on samples that were held out. Measurements are kept; of the fit, what helps, for predictions of
    this board's other kernels. The waits of each bank are fitted to reads of new lines, judged by
    reads in sequence and at random, and shown as lines for the chip's file. An emulated board
    measures nothing, so nothing of it is kept.

    Example: `thimble cost import contact.zip`
    """
    if is_contact(file):
        _contact(file, json, keep=keep)
        return
    if not keep:
        raise InputError("--no-keep is for a file of `thimble contact`")
    with Database() as database:
        count = database.import_from(file)
    _say(json, file, count, f"{count} measurements taken over from {file}")


def _contact(file: Path, json: str | None, *, keep: bool) -> None:
    contact = read_contact(file)
    if contact.board == STICKS:
        raise InputError(
            f"{file} is of a visit to Edge TPUs, which have no kernels to import; its page shows it"
        )
    samples = compared(contact)
    by_kernel, fitted = residuals(samples), fit(samples)
    with Database() as database:
        count = kept(contact, fitted, database) if keep else 0
    waits = [(one, _lines(contact.board, one)) for one in fitted_waits(contact)]
    fits = keep and not contact.emulated and fitted is not None and fitted.helps
    content = {
        "file": str(file),
        "measurements": count,
        "board": contact.board,
        "core": contact.core,
        "memories": [{**asdict(one), "stall": one.stall} for one in contact.accesses],
        "waits": [{**asdict(bank), "file": list(lines)} for bank, lines in waits],
        "pairs": [asdict(one) for one in contact.pairs],
        "residuals": [asdict(one) for one in by_kernel],
        "fit": None if fitted is None else {**asdict(fitted), "kept": fits},
    }
    if not tell_json(json, content):
        return
    console = output_console()
    console.say(
        f"{contact.board}, {contact.core}: {len(samples)} operators in cycles, as predicted:"
    )
    for one in by_kernel:
        console.say(
            f"{one.kernel or 'all of ' + contact.core:<44} {one.samples:>4}  measured / predicted "
            f"{one.ratio:6.3f}  error {one.mean_error:6.1%} on average, "
            f"{one.worst_error:+.1%} at most",
            whole=True,
        )
    for access in contact.accesses if not contact.emulated else ():
        said = (
            "does not say" if access.predicted_stall is None else f"says {access.predicted_stall}"
        )
        console.say(
            f"{access.bank}: {access.what} waits {access.stall:.1f} cycles, the chip's file {said}"
        )
    for fit_of_bank, lines in waits:
        console.say(_waits_text(fit_of_bank))
        for line in lines if fit_of_bank.helps else ():
            console.say(f"    {line}", whole=True)
    if any(lines and fit_of_bank.helps for fit_of_bank, lines in waits):
        console.say(
            "These lines are for the chip's file. Visit the board again with them: the fit of "
            "kernels below has the waits in it."
        )
    for pair in contact.pairs if not contact.emulated else ():
        said = (
            "no table of the core"
            if pair.predicted is None
            else f"{pair.predicted:.2f} by the table"
        )
        console.say(f"{pair.name}: {pair.count:.2f} cycles, {said}")
    console.say(_fit_text(fitted))
    if contact.emulated:
        console.say("Kept: nothing. An emulated board's cycles are modelled, not measured.")
    elif keep:
        text = f"Kept in {database.file}: {count} measurements"
        console.say(f"{text}{', and the fit' if fits else ', not the fit'}.", whole=True)


def _lines(board: str, fit: WaitsFit) -> tuple[str, ...]:
    """As `lines_for_file`; () for a board that is not known here."""
    try:
        return lines_for_file(find_board(board), fit)
    except InputError:
        return ()


def _waits_text(fit: WaitsFit) -> str:
    before, after = fit.before, fit.after
    return (
        f"{fit.bank}: fitted to {fit.accesses} kinds of access, read_cycles "
        f"{before.read_cycles:g} -> {after.read_cycles:g}, burst_cycles {before.burst_cycles:g} -> "
        f"{after.burst_cycles:g}; {fit.held_out} others are off by {fit.error_before:.2f} cycles "
        f"before, {fit.error_after:.2f} after"
    )


def _fit_text(fitted: Fit | None) -> str:
    if fitted is None:
        return "Too few operators for a fit."
    return (
        f"Fit to {fitted.samples} operators, judged by {fitted.held_out} that were held out: error "
        f"{fitted.error_before:.1%} before, {fitted.error_after:.1%} after."
    )


@group.command(cls=Command)
@grouped
def check(
    models: list[Path] = argument("MODEL", "Model files to compile and measure."),
    board: list[str] | None = option(None, "Boards to use; default: all in QEMU.", "-b"),
    read_as: list[str] | None = option(
        None,
        "Read what runs in QEMU as this board or chip, too; may be repeated.",
        "--as",
        complete=completion.targets,
    ),
    port: PortOption = None,
    cmsis_nn: CmsisNnOption = None,
    json: JsonOption = None,
) -> None:
    """Compare predicted latency of models with measured cycles: mean and worst error of operators.

    On an emulated board the cycles are modelled from a trace. The prediction is made once with what
    the database knows and once by the formula alone. Models that do not fit a board are left out.
    The measurements are stored afterwards.

    Example: `thimble cost check model.tflite --board mps2-an386 --as nucleo-l4r5zi`
    """
    names = tuple(board or emulated_boards())
    for name in names:
        find_board(name)
    with progress() as step:
        checks = check_models(models, names, port, cmsis_nn, step, tuple(read_as or ()))
    if tell_json(json, {"checks": [asdict(entry) for entry in checks]}):
        output_console().print(_table(checks))


def _say(json: str | None, file: Path, count: int, text: str) -> None:
    if tell_json(json, {"file": str(file), "measurements": count}):
        output_console().say(text, whole=True)


def _table(checks: tuple[Check, ...]) -> Table:
    table = Table(header_style="bold")
    for heading in ("model", "board"):
        table.add_column(heading, no_wrap=True)
    for heading in ("one inference", "basis", "by", "unit", "known", "total", "mean", "worst"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("worst operator", no_wrap=True)
    for entry in checks:
        for by, accuracy in (("database", entry.known), ("formula", entry.estimated)):
            table.add_row(
                entry.model[-28:] if by == "database" else "",
                entry.board if by == "database" else "",
                f"{entry.measured:,} {entry.unit}" if by == "database" else "",
                entry.basis.value if by == "database" else "",
                by,
                accuracy.unit,
                f"{accuracy.measured_share:.0%}",
                f"{accuracy.total_error:+.1%}",
                f"{accuracy.mean_error:.1%}",
                f"{accuracy.worst_error:+.1%}",
                accuracy.worst_operator[-24:],
            )
    return table
