"""A sweep: its cases, the known results, and the others on a pool of workers."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.bench.bench_file import Bench
from toolchain.boards import board as find_board
from toolchain.boards import stand_in
from toolchain.errors import InputError, did_you_mean
from toolchain.frontends import read_whole_model
from toolchain.planning.options import PlanOptions
from toolchain.sweep.cases import WORKS, Case, tool_of
from toolchain.sweep.changes import Changes, changes
from toolchain.sweep.jobs import Job, Pool, Shared, run
from toolchain.sweep.store import Row, Store
from toolchain.sweep.work import Place, killed, work

ON_BOARDS = ("verify", "profile")
"""Works that run on a board."""
UNFIT = "does-not-fit"
LEFT_OUT = "none"
"""A value of an option that leaves it out."""
Words = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Request:
    """Axes of a sweep. `options`: each combination of options, as a value and in words."""

    files: tuple[Path, ...]
    boards: tuple[str, ...]
    works: tuple[str, ...]
    options: tuple[tuple[PlanOptions, Words], ...]
    runs: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Swept:
    """The rows of a sweep in the order of its cases; of cases with one key, each has its row."""

    rows: tuple[Row, ...]
    changes: Changes
    seconds: float

    @property
    def cached(self) -> int:
        return sum(row.cached for row in self.rows)

    @property
    def unfit(self) -> int:
        """Rows whose model does not fit: an answer, and no failure of the sweep."""
        return sum(row.kind == UNFIT for row in self.rows)

    @property
    def failed(self) -> int:
        return sum(not row.ok and row.kind != UNFIT for row in self.rows)


@dataclass(frozen=True)
class Planned:
    """The cases of a sweep, the bytes of its models by hash, and what real boards it has."""

    cases: tuple[Case, ...]
    models: Mapping[str, Shared]
    places: Mapping[str, tuple[Place, ...]]


def planned(request: Request, bench: Bench | None = None) -> Planned:
    """Every combination. Raises InputError for what is no model file, board or work, and for a real
    board that is to run something and is not on the bench.
    """
    for name in request.works:
        if name not in WORKS:
            known = f"{', '.join(WORKS)}{did_you_mean(name, WORKS)}"
            raise InputError(f"--do {name!r}: it is one of {known}")
    places: dict[str, tuple[Place, ...]] = {}
    for board in bench.boards if bench is not None else ():
        if not board.started_here:
            places[board.name] = (*places.get(board.name, ()), Place.of(board))
    tools = {}
    for name, do in itertools.product(request.boards, request.works):
        _check_board(name, do, places)
        tools[name, do] = tuple(tool_of(name, do).items())
    models, hashes = {}, {}
    for file in request.files:
        data = read_whole_model(file)
        hashes[file] = hashlib.sha256(data).hexdigest()
        models[hashes[file]] = Shared(hashes[file], data)
    combined = itertools.product(request.files, request.boards, request.works, request.options)
    cases = tuple(
        Case(
            do=do,
            file=str(file),
            sha256=hashes[file],
            board=board,
            options=options,
            words=words,
            runs=request.runs,
            seed=request.seed,
            tool=tools[board, do],
        )
        for file, board, do, (options, words) in combined
    )
    return Planned(cases, models, places)


def sweep(
    wanted: Planned,
    store: Store,
    pool: Pool,
    command: str = "",
    watch: Callable[[Row, int, int], None] = lambda row, done, total: None,
    *,
    again: bool = False,
) -> Swept:
    """Compute what the store does not have (with `again`, everything), and keep it there.

    `watch` is told each row as it comes, how many there are by then, and of how many.
    """
    begin = time.perf_counter()
    number = store.begin(command, wanted.cases)
    rows = {} if again else store.known(wanted.cases)
    cases = {case.key: case for case in wanted.cases}
    for count, row in enumerate(list(rows.values()), 1):
        watch(row, count, len(cases))
    jobs = [_job(case, wanted) for key, case in cases.items() if key not in rows]
    store.before(number, {job.key for job in jobs})  # a damaged row is told before any work
    for result in run(jobs, pool, wanted.places):
        case = cases[result.job.key]
        done = killed(result.where) if result.died else result.value
        rows[case.key] = store.put(case, done, result.where)
        watch(rows[case.key], len(rows), len(cases))
    store.end(number)
    ordered = tuple(_as(case, rows[case.key]) for case in wanted.cases)
    changed = changes(ordered, store.before(number))
    return Swept(ordered, changed, time.perf_counter() - begin)


def _job(case: Case, wanted: Planned) -> Job:
    needs = case.board if case.do in ON_BOARDS and case.board in wanted.places else ""
    return Job(case.key, work, (case, wanted.models[case.sha256]), needs)


def _as(case: Case, row: Row) -> Row:
    """The row under the name of this case: files may be equal."""
    return Row(case, row.done, row.cached)


def _check_board(name: str, do: str, places: Mapping[str, tuple[Place, ...]]) -> None:
    board = find_board(name)
    if do == "profile" and board.is_host:
        raise InputError("nothing is counted on this machine: profile on a board, or one in QEMU")
    if do in ON_BOARDS and not (board.emulator or board.is_host or name in places):
        other = stand_in(board)
        emulated = f", or sweep {other.name}, which QEMU runs" if other is not None else ""
        raise InputError(
            f"{name} is a real board, and --do {do} runs there: name it in --bench FILE{emulated}"
        )


def combined(
    axes: Mapping[str, Sequence[str]], options: Callable[[Mapping[str, str]], PlanOptions]
) -> Iterator[tuple[PlanOptions, Words]]:
    """Every combination of the values of `axes`. `options` makes a value of one, and raises
    InputError for what cannot be combined.
    """
    for values in itertools.product(*axes.values()):
        words = tuple((n, v) for n, v in zip(axes, values, strict=True) if v != LEFT_OUT)
        try:
            made = options(dict(words))
        except InputError as error:
            told = " ".join(f"--{name} {value}" for name, value in words)
            raise InputError(f"{told}: {error.message}", remedies=error.remedies) from error
        yield made, words
