"""`thimble sweep`: every combination of models, boards and options, on many workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from toolchain.bench.bench_file import Bench, read_bench
from toolchain.cli import _completion as completion
from toolchain.cli._console import Steps, note, output_console, progress
from toolchain.cli._groups import argument, grouped, option
from toolchain.cli._options import named_board
from toolchain.cli._output import Output, write_json, write_text
from toolchain.cli._page import command_line
from toolchain.errors import InputError, ResultError, did_you_mean
from toolchain.files.formats import WRITTEN_BY_HAND, versioned_toml
from toolchain.files.records import record
from toolchain.planning.option import options_of
from toolchain.planning.options import PlanOptions
from toolchain.report.gates import broken, check_rows, gates
from toolchain.report.sweep import SweepRow, junit, sweep_table
from toolchain.sweep.changes import figures, pareto
from toolchain.sweep.cluster import DaskPool
from toolchain.sweep.jobs import Pool
from toolchain.sweep.local import LocalPool
from toolchain.sweep.store import Row, Store
from toolchain.sweep.sweep import UNFIT, Request, Swept, combined, planned
from toolchain.sweep.sweep import sweep as run_sweep
from toolchain.version import __version__

_SHOWN = 40
_CHANGES_SHOWN = 12
_SAY_SECONDS = 10.0
_NOT_COMBINED = (
    "labels",
    "stream_input",
    "streamed_input",
    "choice",
    "input_shapes",
    "preprocess",
)
_OPTIONS = {
    known.option.name.removeprefix("--"): known.option
    for known in options_of(PlanOptions)
    if known.field not in _NOT_COMBINED
}
"""The options of `thimble plan` that a sweep combines, by the names that they have there."""


@dataclass(frozen=True)
class SweepFile:
    """A sweep.toml. Models and patterns are relative to its folder.

    Each of `options` is a value or a list of values; "none" leaves the option out. `groups`: names
    of files or patterns of them, by a group's name, by which the page filters.
    """

    models: tuple[str, ...]
    boards: tuple[str, ...] = ()
    do: tuple[str, ...] = ("plan",)
    options: Mapping[str, Any] = field(default_factory=dict)
    runs: int | None = None
    seed: int = 0
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def group_of(self, path: Path) -> str:
        """The first group that has the file; '' where none has."""
        named = (
            name
            for name, patterns in self.groups.items()
            if any(fnmatchcase(path.name, pattern) for pattern in patterns)
        )
        return next(named, "")


@dataclass(frozen=True)
class AskedOptions:
    """Axes on the command line, in place of those of a sweep.toml."""

    boards: str | None = option(
        None, "Boards, as in `thimble plan`.", "--boards", "--board", "-b", unit="NAME,..."
    )
    do: str | None = option(None, "Commands. Default: plan.", unit="plan,compile,verify,profile")
    ram: str | None = option(None, "As in `thimble plan`; none: no limit.", unit="BYTES,...")
    flash: str | None = option(None, "As in `thimble plan`.", unit="BYTES,...")
    optimise: str | None = option(None, "As in `thimble plan`.", unit="GOAL,...")
    kernels: str | None = option(None, "As in `thimble plan`.", unit="WHOSE,...")
    options: list[str] | None = option(
        None,
        f"Any of {', '.join(_OPTIONS)}, as in `thimble plan`; true or false for options "
        "without a value. May be repeated.",
        "--option",
        unit="NAME=VALUE,...",
    )
    runs: int | None = option(None, "Runs of verify and profile.", least=0)


@dataclass(frozen=True)
class WorkerOptions:
    """Options of the workers."""

    jobs: int | None = option(None, "Worker processes. Default: one per core.", "-j", least=1)
    dask: str | None = option(
        None,
        "Use the workers of this Dask cluster instead. Needs the extra [dask].",
        unit="tcp://HOST:PORT",
    )
    bench: Path | None = option(
        None,
        "A bench.toml with real boards. Each board runs one task at a time; labgrid's places are "
        "reserved during the sweep.",
        unit="FILE",
    )


@dataclass(frozen=True)
class SweepOutput(Output):
    """Options of the output, with JUnit's XML."""

    html: str | None = option(
        None,
        "Write a page: models by boards, a table with filters, the Pareto front, and changes. "
        "Needs the extra [report].",
        unit="FILE|-",
    )
    junit: str | None = option(None, "Write JUnit's XML for a CI server.", unit="FILE|-")

    @property
    def has_tables(self) -> bool:
        return super().has_tables and self.junit != "-"


@grouped
def command(
    models: list[str] = argument(
        "MODEL|SWEEP.toml",
        "Model files or patterns of them ('models/*.tflite'), or one file that describes the "
        "whole sweep.",
        complete=completion.models,
    ),
    *,
    asked: AskedOptions,
    workers: WorkerOptions,
    out: Path = option(Path("sweep.sqlite"), "The SQLite file of all rows.", "-o", unit="FILE"),
    again: bool = option(False, "Compute all rows, also those that FILE has."),
    output: SweepOutput,
) -> None:
    """Plan, compile, verify or profile every combination of models, boards and options.

    Each row goes to the file of --out when its task is done. Rows of the file are not computed
    again: a sweep that was killed continues, and a sweep with a new model, board or version of
    Thimble computes only the changed rows. If a worker dies, its task begins again on another.

    A model that does not fit is no failure. Exits 1 if a row failed: outputs differ, a model is not
    supported, a board is at fault. --fail-on takes a field of a row (of the command's own --json),
    or the counts done, failed, unfit, cached.

    Example: `thimble sweep models/*.tflite --boards nucleo-u575zi-q,nucleo-h743zi --ram 64K,128K`
    """
    conditions = gates(output.fail_on)
    file, folder = _file(models)
    request = _request(file, folder, asked)
    begin = time.perf_counter()
    on_bench = None if workers.bench is None else read_bench(workers.bench)
    wanted = planned(request, on_bench)
    with Store(out) as store, progress() as step, _pool(workers, on_bench, step) as pool:
        watch = _Watch(step, len(wanted.cases))
        swept = run_sweep(wanted, store, pool, command_line(), watch, again=again)
    shown = sweep_rows(swept.rows, file.group_of)
    whole = {
        "done": len(swept.rows),
        "failed": swept.failed,
        "unfit": swept.unfit,
        "cached": swept.cached,
    }
    named = [(row.case.name, row.as_json()) for row in swept.rows]
    if output.json:
        fields = {
            "rows": [row for _, row in named],
            **whole,
            "changes": asdict(swept.changes),
            "file": str(out),
            "seconds": time.perf_counter() - begin,
        }
        write_json(output.json, fields)
    if output.junit:
        write_text(output.junit, junit(shown, broken(conditions, named)).decode())
    if output.html:
        write_text(output.html, sweep_page(shown, swept, out))
    if output.has_tables:
        _print(shown, swept, out)
    if swept.failed:
        raise ResultError(_failure(swept))
    check_rows(conditions, named, whole)


def sweep_rows(rows: Sequence[Row], group_of: Callable[[Path], str]) -> list[SweepRow]:
    """The rows as they are shown. Stars are given among those of one model."""
    best: set[int] = set()
    for file in dict.fromkeys(row.case.file for row in rows):
        of_file = [place for place, row in enumerate(rows) if row.case.file == file]
        best |= {of_file[i] for i in pareto([rows[place] for place in of_file])}
    shown = []
    for place, row in enumerate(rows):
        case, numbers = row.case, figures(row)
        shown.append(
            SweepRow(
                name=case.name,
                suite=f"{case.do} on {case.board}",
                model=Path(case.file).stem,
                group=group_of(Path(case.file)),
                board=case.board,
                do=case.do,
                options=" ".join(f"{name}={value}" for name, value in case.words),
                ok=row.ok,
                cached=row.cached,
                kind=row.kind,
                error=row.message,
                arena=row.done.fields.get("arena_bytes"),
                ram=row.done.fields.get("ram_bytes"),
                flash=row.done.fields.get("flash_bytes"),
                milliseconds=numbers["milliseconds"],
                basis=str(row.latency.get("basis") or ""),
                differing=row.done.fields.get("differing"),
                seconds=row.done.seconds,
                best=place in best,
            )
        )
    return shown


def sweep_page(shown: Sequence[SweepRow], swept: Swept, out: Path) -> str:
    """The page. Raises MissingToolError without the charts' package."""
    from toolchain.page.sweep import sweep_html, swept_page

    made = f"{date.today().isoformat()}, Thimble {__version__}."
    page = swept_page(f"{len(shown):,} rows of a sweep", command_line(), made, shown)
    return sweep_html(
        replace(
            page,
            file=str(out),
            cached=swept.cached,
            seconds=swept.seconds,
            changes=asdict(swept.changes),
        )
    )


class _Watch:
    """The rows as they come: on the terminal's bar, or, where there is none, in lines."""

    def __init__(self, step: Steps, total: int) -> None:
        self._step = step
        self._said = time.monotonic()
        self._failed = self._fresh = 0
        self._begin = time.monotonic()
        step("starting workers", 0, total)

    def __call__(self, row: Row, done: int, total: int) -> None:
        self._failed += not row.ok
        self._fresh += not row.cached
        now = time.monotonic()
        left = (total - done) * (now - self._begin) / self._fresh if self._fresh else 0.0
        text = f"{done:,} of {total:,} rows, {self._failed:,} not ok, {left:,.0f} s to go"
        self._step(text, done, total)
        if not self._step.is_shown and (now > self._said + _SAY_SECONDS):
            self._said = now
            note(text)


@contextmanager
def _pool(asked: WorkerOptions, bench: Bench | None, step: Steps) -> Iterator[Pool]:
    if asked.dask is not None and asked.jobs is not None:
        raise InputError(
            "--jobs is the number of processes here, --dask uses others: leave out one"
        )
    with ExitStack() as stack:
        if bench is not None:
            stack.enter_context(bench.reserved())
        if asked.dask is not None:
            yield stack.enter_context(DaskPool(asked.dask, step))
        else:
            yield stack.enter_context(LocalPool(asked.jobs or os.cpu_count() or 1))


def _file(models: Sequence[str]) -> tuple[SweepFile, Path]:
    """A sweep's file and its folder, or a sweep of `models` in this one."""
    named = [Path(name) for name in models if name.endswith(".toml")]
    if named and len(models) > 1:
        raise InputError(f"{named[0]} is a whole sweep: name models in it, or leave it out")
    if named:
        content = versioned_toml(named[0], WRITTEN_BY_HAND)
        return record(SweepFile, content, str(named[0])), named[0].parent
    return SweepFile(tuple(models)), Path()


def _request(file: SweepFile, folder: Path, asked: AskedOptions) -> Request:
    """The request of a file, with the axes of the command line in place of the file's."""
    axes = {name: _texts(value) for name, value in file.options.items()}
    given = {name: getattr(asked, name) for name in ("ram", "flash", "optimise", "kernels")}
    axes |= {name: _values(text) for name, text in given.items() if text is not None}
    for text in asked.options or ():
        name, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"--option {text!r} has no value; write it as kernels=auto,cmsis-nn")
        axes[name] = _values(values)
    for name, values_of in axes.items():
        if name not in _OPTIONS:
            known = f"{', '.join(_OPTIONS)}{did_you_mean(name, _OPTIONS)}"
            raise InputError(f"a sweep has no option {name!r}; there are {known}")
        if not values_of:
            raise InputError(f"the option {name!r} of a sweep has no values")
    boards = file.boards if asked.boards is None else _values(asked.boards)
    if not boards:
        named_board("")
    return Request(
        files=tuple(dict.fromkeys(path for name in file.models for path in _files(folder, name))),
        boards=boards,
        works=file.do if asked.do is None else _values(asked.do),
        options=tuple(combined(axes, _plan_options)),
        runs=file.runs if asked.runs is None else asked.runs,
        seed=file.seed,
    )


def _files(folder: Path, name: str) -> list[Path]:
    """The model files that a name or pattern stands for. Raises InputError where there are none."""
    if not any(mark in name for mark in "*?["):
        return [folder / name]
    path = folder / name
    root = Path(path.anchor)
    files = sorted(file for file in root.glob(str(path.relative_to(root))) if file.is_file())
    if not files:
        raise InputError(f"no file is named like {path}")
    return files


def _texts(value: Any) -> tuple[str, ...]:
    """The values of an option in a file."""
    values = value if isinstance(value, list) else [value]
    return tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in values)


def _values(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))


def _plan_options(words: Mapping[str, str]) -> PlanOptions:
    """The options of planning. Raises InputError as `PlanOptions.of` does, and for a word that is
    not of an option's type."""
    return PlanOptions.of({_OPTIONS[name].key: _given(name, text) for name, text in words.items()})


def _given(name: str, text: str) -> Any:
    """The value that the command line makes of this text."""
    takes = _OPTIONS[name].takes
    if takes is bool:
        if text not in ("true", "false"):
            raise InputError(f"{name} is {text!r}: it is true or false")
        return text == "true"
    try:
        return takes(text)
    except ValueError:
        raise InputError(f"{name} is {text!r}, no number") from None


def _print(shown: Sequence[SweepRow], swept: Swept, out: Path) -> None:
    console = output_console()
    first = sorted(shown, key=lambda row: row.ok)[:_SHOWN]  # failed rows first
    console.print(sweep_table(first if len(shown) > _SHOWN else shown))
    if len(shown) > _SHOWN:
        console.print(f"... and {len(shown) - _SHOWN:,} more in {out}", markup=False)
    for row in shown:
        if row.kind and row.kind != UNFIT:
            console.say(f"{row.name}: {row.error}", whole=True)
    changed = swept.changes
    for one in changed.changes[:_CHANGES_SHOWN]:
        console.say(f"Changed: {one.case}: {one.figure} {one.before} > {one.now}", whole=True)
    if len(changed.changes) > _CHANGES_SHOWN:
        console.print(f"... and {len(changed.changes) - _CHANGES_SHOWN:,} more; --json has all")
    if changed.new or changed.gone:
        console.print(
            f"Since the sweep before: {len(changed.new):,} new cases, {len(changed.gone):,} gone."
        )
    console.print(
        f"{len(shown):,} rows in {swept.seconds:,.1f} s: {swept.cached:,} were known, "
        f"{swept.unfit:,} do not fit, {swept.failed:,} failed. Written to {out}",
        markup=False,
    )


def _failure(swept: Swept) -> str:
    failed = [row for row in swept.rows if not row.ok and row.kind != UNFIT]
    first = failed[0]
    return (
        f"{len(failed):,} of {len(swept.rows):,} rows failed; the first is "
        f"`{first.case.name}`: {first.message}"
    )
