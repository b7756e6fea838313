"""Mutated model files, split networks and serial frames until something breaks.

    .venv/bin/python -m benchmarks.fuzz all --jobs 2 --json results
    .venv/bin/python -m benchmarks.fuzz read --cases 1000000 --jobs 2
    .venv/bin/python -m benchmarks.fuzz plan --cases 100000 --jobs 2
    .venv/bin/python -m benchmarks.fuzz c --cases 10000 --jobs 2
    .venv/bin/python -m benchmarks.fuzz split --cases 1700 --jobs 2
    .venv/bin/python -m benchmarks.fuzz split --board mps3-an547 --cases 150
    .venv/bin/python -m benchmarks.fuzz devices --cases 200000 --jobs 2
    .venv/bin/python -m benchmarks.fuzz files --cases 10000 --jobs 2
    .venv/bin/python -m benchmarks.fuzz frames --board mps3-an547 --cases 50000
    .venv/bin/python -m benchmarks.fuzz read --cases 100000000 --dask tcp://scheduler:8786
    .venv/bin/python -m benchmarks.fuzz replay 4711 -o case.tflite

`read`: a mutated file through its front end and the passes. `plan`: what is accepted is planned,
too, for one of three boards; `--cases` counts what was planned. `c`: it runs as C under ASan and
UBSan beside the reference of `thimble verify`; `--cases` counts what ran.
`split`: random networks in a random budget of RAM give the bytes of the unsplit ones, on this
machine or on `--board`. `devices`: a stand-in for a board tells lies. `files`: damaged databases,
manifests and lists of the tool's own, read by its commands. `frames`: serial frames, good and
bad, to a firmware in QEMU. `all`: each of them but `frames`, to its end, and a table of it.
Case N of a seed is the same file every time: `replay` writes it, `judge` says what a level makes of
a file, `minimise` shrinks it to what still ends the same way. The exit code is 1 where anything
ended in a traceback, hung, killed its process, or computed wrong bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.fuzz.cases import Case, case
from benchmarks.fuzz.cluster import run
from benchmarks.fuzz.devices import liar
from benchmarks.fuzz.documents import damager
from benchmarks.fuzz.every import RUNS, Run, table
from benchmarks.fuzz.frames import framer
from benchmarks.fuzz.minimise import minimised
from benchmarks.fuzz.outcome import (
    CIRCULAR,
    EQUAL,
    FAILED,
    FINDINGS,
    PLANNED,
    SANITIZER,
    UNDEFINED,
    UNJUDGED,
    WRONG,
    Outcome,
    Tally,
)
from benchmarks.fuzz.pool import Pool, Serve
from benchmarks.fuzz.reading import outcome_of_plan, planner, read_outcome, reader
from benchmarks.fuzz.running import outcome_in_c, runner
from benchmarks.fuzz.seeds import seed
from benchmarks.fuzz.splitting import splitter
from toolchain.sweep.cluster import DaskPool
from toolchain.sweep.jobs import Pool as Workers

SMALLEST = (
    "read --cases 1",
    "plan --cases 1",
    "c --cases 1",
    "split --cases 1",
    "devices --cases 1",
    "files --cases 1",
    "frames --cases 1",
    "replay 1 -o {scratch}/case",
    "judge examples/digits/digits_int8.tflite --level plan",
)


@dataclass(frozen=True)
class Level:
    """`counted`: the outcomes that `--cases` counts; all, where there are none. `board`: where it
    runs unless `--board` says otherwise; '' where that is no question."""

    serve: Callable[..., Serve]
    counted: tuple[str, ...]
    cases: int
    chunk: int
    silence_seconds: float
    board: str = ""

    def done(self, tally: Tally) -> int:
        return sum(tally.counts[kind] for kind in self.counted) if self.counted else tally.cases


RAN = (EQUAL, CIRCULAR, UNJUDGED, UNDEFINED, WRONG, SANITIZER, FAILED)
_SAVE_SECONDS = 30.0
LEVELS = {
    "read": Level(reader, (), 20_000, 100, 300.0),
    "plan": Level(planner, (PLANNED,), 2_000, 20, 600.0),
    "c": Level(runner, RAN, 400, 120, 600.0),
    "split": Level(splitter, (EQUAL, WRONG, SANITIZER, FAILED), 100, 24, 900.0, "host"),
    "devices": Level(liar, (), 5_000, 200, 120.0),
    "files": Level(damager, (), 500, 50, 300.0),
    "frames": Level(framer, (), 5_000, 200, 120.0, "netduinoplus2"),
}


def fuzz(
    name: str,
    seed: int = 0,
    cases: int | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    first: int = 0,
    board: str = "",
    console: Console | None = None,
    save: Path | None = None,
    workers: Workers | None = None,
) -> Tally:
    """Run one level: `cases` (default: the level's own) or `seconds`, whichever is over first.

    `save`: a file that has the tally every half a minute, as JSON. `workers`: where it runs,
    instead of `jobs` processes here.
    """
    level = LEVELS[name]
    wanted = level.cases if cases is None else cases
    until = time.monotonic() + seconds if seconds is not None else None

    def enough(tally: Tally) -> bool:
        return level.done(tally) >= wanted or (until is not None and time.monotonic() > until)

    tally = Tally(name, seed)
    place = {"place": board or level.board} if level.board else {}
    chunk = min(level.chunk, 2 * wanted)
    if workers is None:
        pool = Pool(partial(level.serve, seed, **place), jobs, chunk, level.silence_seconds)
        tallies = pool.run(tally, itertools.count(first), enough)
    else:
        quiet, numbers = level.silence_seconds, itertools.count(first)
        tallies = run(level.serve, tally, place, numbers, chunk, quiet, workers, enough)
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = Progress(
        *columns,
        TextColumn("{task.description}"),
        console=console or Console(quiet=True),
        auto_refresh=False,
        transient=True,
    )
    with shown:
        task = shown.add_task("", total=wanted)
        saved = 0.0
        for _ in tallies:
            if save is not None and tally.seconds > saved + _SAVE_SECONDS:
                saved = tally.seconds
                _write(tally, save)
            found = f"{len(tally.findings)} kinds of findings" if tally.failed else ""
            shown.update(task, completed=min(level.done(tally), wanted), description=found)
            shown.refresh()
    if save is not None:
        _write(tally, save)
    return tally


def _write(tally: Tally, path: Path) -> None:
    path.write_text(json.dumps(tally.as_json(), indent=1) + "\n")


def print_tally(tally: Tally, console: Console) -> None:
    rate = tally.cases / max(tally.seconds, 1e-9)
    table = Table(
        title=f"{tally.level}, seed {tally.seed}: {tally.cases:,} cases in "
        f"{tally.seconds:,.0f} s ({rate:,.0f}/s)",
        header_style="bold",
    )
    table.add_column("outcome")
    table.add_column("cases", justify="right")
    for kind, count in tally.counts.most_common():
        table.add_row(kind, f"{count:,}")
    console.print(table)
    for found in sorted(tally.findings.values(), key=lambda f: -f.count):
        numbers = ", ".join(map(str, found.numbers[:5]))
        text = f"{found.count} x {found.kind}: {found.where} (cases {numbers}): {found.message}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, level in LEVELS.items():
        command = commands.add_parser(name)
        command.add_argument("--cases", type=int, default=level.cases)
        command.add_argument("--seconds", type=float)
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--first", type=int, default=0, help="number of the first case")
        command.add_argument("--jobs", type=int, default=1)
        command.add_argument(
            "--dask",
            metavar="tcp://HOST:PORT",
            help="workers instead (of `dask worker --no-nanny`)",
        )
        if level.board:
            command.add_argument("--board", default=level.board, help=f"default {level.board}")
        command.add_argument("--json", type=Path, help="all counts and findings")
    for name, words in (("judge", "what a level makes of files"), ("minimise", "shrink a find")):
        command = commands.add_parser(name, help=words)
        command.add_argument("files", type=Path, nargs="+" if name == "judge" else 1)
        command.add_argument("--level", choices=list(FILE_LEVELS), default="c")
        if name == "minimise":
            command.add_argument("--like", type=Path, help="the sound file that it came from")
            command.add_argument("--case", type=int, help="its number, which knows the sound file")
            command.add_argument("--seed", type=int, default=0)
            command.add_argument("-o", "--output", type=Path, required=True)
    every = commands.add_parser("all", help="every level to its end, and the table of the docs")
    every.add_argument("--seed", type=int, default=0)
    every.add_argument("--jobs", type=int, default=1)
    every.add_argument("--share", type=float, default=1.0, help="of the cases of each; default 1")
    every.add_argument("--json", type=Path, metavar="DIR", help="a file for each level, the table")
    replay = commands.add_parser("replay", help="write the file of one case")
    replay.add_argument("number", type=int)
    replay.add_argument("-o", "--output", type=Path, required=True)
    replay.add_argument("--seed", type=int, default=0)
    return parser


FILE_LEVELS: dict[str, Callable[[Case], Outcome]] = {
    "read": lambda found: read_outcome(found)[0],
    "plan": outcome_of_plan,
    "c": outcome_in_c,
}


def _judged(path: Path, level: str) -> Outcome:
    return FILE_LEVELS[level](Case(0, path.name, path.suffix.lower(), path.read_bytes()))


def _minimise(arguments: argparse.Namespace, console: Console) -> int:
    (path,) = arguments.files
    start: bytes | None = None
    if arguments.like is not None:
        start = arguments.like.read_bytes()
    elif arguments.case is not None:
        start = seed(case(arguments.seed, arguments.case).start).data

    def judge(data: bytes) -> Outcome:
        return FILE_LEVELS[arguments.level](Case(0, path.name, path.suffix.lower(), data))

    found = minimised(path.read_bytes(), path.suffix.lower(), judge, start)
    arguments.output.write_bytes(found)
    outcome = judge(found)
    text = f"{arguments.output}: {len(found):,} bytes, {outcome.kind}: {outcome.where}"
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    return 0


def _all(arguments: argparse.Namespace, console: Console) -> int:
    """Every level in turn; 1 where one of them found something."""
    done: list[tuple[Run, Tally, int]] = []
    folder: Path | None = arguments.json
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    for each in RUNS:
        cases = max(1, round(each.cases * arguments.share))
        tally = fuzz(
            each.level,
            arguments.seed,
            cases,
            jobs=arguments.jobs,
            console=Console(stderr=True),
            save=folder / f"{each.level}.json" if folder is not None else None,
        )
        print_tally(tally, console)
        done.append((Run(each.level, cases), tally, LEVELS[each.level].done(tally)))
    text = table(done)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    if folder is not None:
        (folder / "table.md").write_text(text + "\n")
    return 1 if any(tally.failed for _, tally, _ in done) else 0


def main() -> int:
    arguments = _parser().parse_args()
    console = Console()
    if arguments.command == "replay":
        found = case(arguments.seed, arguments.number)
        arguments.output.write_bytes(found.data)
        console.print(f"{arguments.output}: {len(found.data):,} bytes, from {found.start}")
        return 0
    if arguments.command == "judge":
        outcomes = [_judged(path, arguments.level) for path in arguments.files]
        for path, outcome in zip(arguments.files, outcomes, strict=True):
            text = f"{path.name}: {outcome.kind}: {outcome.where}: {outcome.message}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        return 1 if any(outcome.kind in FINDINGS for outcome in outcomes) else 0
    if arguments.command == "minimise":
        return _minimise(arguments, console)
    if arguments.command == "all":
        return _all(arguments, console)
    with contextlib.ExitStack() as stack:
        tally = fuzz(
            arguments.command,
            arguments.seed,
            arguments.cases,
            arguments.seconds,
            arguments.jobs,
            arguments.first,
            getattr(arguments, "board", ""),
            Console(stderr=True),
            arguments.json,
            stack.enter_context(DaskPool(arguments.dask)) if arguments.dask else None,
        )
    print_tally(tally, console)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
