"""The figures of README and docs: run by command, kept as data, rendered as tables and plots.

    python -m benchmarks.figures [NAME ...] [--within MINUTES] [--again] [--jobs N] [--shared DIR]
        [--tflm DIR]
    python -m benchmarks.figures [NAME ...] --list | --stale
    python -m benchmarks.figures --render | --check

Without --list, --stale, --render and --check: runs every figure (or those named) whose data is not
that of HEAD. Each is kept as `docs/figures/NAME.json` and rendered into the documents as it ends;
an interrupted run goes on where it stopped. The paths that a figure depends on must be committed.
The benchmarks get no measurements of earlier runs. Times are of the processor: those of the last
run, or a guess for a figure that was never run.

A figure is a `Figure` of `benchmarks/figures/declared/`. The exit code is 1 where a figure failed
or was left out, or a document differs (--check).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures.changes import stale
from benchmarks.figures.documents import DocumentError, differing
from benchmarks.figures.figure import ROOT, Figure, figures, load
from benchmarks.figures.running import Runner, estimate

SMALLEST = ("--check", "mlperf --list")


def chosen(names: Sequence[str], most_minutes: float | None) -> list[Figure]:
    """The quickest first, so that much is kept early. Raises KeyError for an unknown name."""
    found = [figures()[name] for name in names] if names else list(figures().values())
    within = [f for f in found if most_minutes is None or estimate(f) <= most_minutes]
    return sorted(within, key=estimate)


def listed(found: Sequence[Figure], *, only_stale: bool) -> Table:
    """A line for each figure: its time, what is kept, and why that is not of HEAD."""
    table = Table("figure", "min", "commands", "of", "commit", "why it would run")
    total = 0.0
    for figure in found:
        kept = load(figure)
        why = stale(figure, kept)
        if only_stale and not why:
            continue
        minutes = f"{'' if kept else 'about '}{estimate(figure):.1f}"
        of = (kept.date, kept.commit) if kept else ("-", "-")
        table.add_row(figure.name, minutes, str(len(figure.commands)), *of, why or "-")
        total += estimate(figure)
    table.caption = f"{total:.0f} minutes of one processor in all"
    return table


def render(console: Console, *, check: bool) -> int:
    """Write the documents, or say which of them differ from the data."""
    try:
        found = list(differing())
    except DocumentError as error:
        console.print(f"error: {error}", markup=False)
        return 1
    for file, text in found:
        console.print(f"{file.relative_to(ROOT)}{' differs' if check else ''}", highlight=False)
        if not check:
            file.write_text(text, encoding="utf-8")
    return 1 if check and found else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these figures")
    parser.add_argument("--list", action="store_true", help="run nothing, list the figures")
    parser.add_argument("--stale", action="store_true", help="list those that would run, and why")
    parser.add_argument("--render", action="store_true", help="write the documents from kept data")
    parser.add_argument("--check", action="store_true", help="fail where --render would change one")
    parser.add_argument("--within", type=float, metavar="MINUTES", help="only figures as quick")
    parser.add_argument("--again", action="store_true", help="run those whose data is of HEAD, too")
    parser.add_argument("--jobs", type=int, default=1, help="commands at a time (1)")
    parser.add_argument(
        "--shared", type=Path, default=ROOT.parent / "shared", metavar="DIR", help="of models"
    )
    parser.add_argument(
        "--tflm", type=Path, metavar="DIR", help="a checkout of tflite-micro, its downloads made"
    )
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    if given.render or given.check:
        return render(console, check=given.check)
    unknown = [name for name in given.names if name not in figures()]
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are: {', '.join(sorted(figures()))}")
    found = chosen(given.names, given.within)
    if given.list or given.stale:
        console.print(listed(found, only_stale=given.stale))
        return 0
    wanted = [f for f in found if given.again or stale(f, load(f))]
    console.print(
        f"{len(wanted)} of {len(found)} figures to run, about "
        f"{sum(map(estimate, wanted)):.0f} minutes of processor time",
        highlight=False,
    )
    folders = {"shared": given.shared, "tflm": given.tflm}
    folders = {name: folder.resolve() for name, folder in folders.items() if folder}
    runner = Runner(folders, given.jobs, lambda: render(console, check=False))
    try:
        failed = runner.run(wanted, again=given.again, asked=given.names)
    except KeyboardInterrupt:
        console.print("stopped; the next run goes on where this one stopped")
        failed = ["stopped"]
    return render(console, check=False) or (1 if failed else 0)


if __name__ == "__main__":
    sys.exit(main())
