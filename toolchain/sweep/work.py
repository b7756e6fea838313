"""A worker's task for one case: the command's work in a scratch folder, and its JSON."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolchain.bench.bench_file import BenchBoard, held, start
from toolchain.boards import board as find_board
from toolchain.deployment.compile import compile_model, compiled_json
from toolchain.deployment.measurements import cost_model
from toolchain.deployment.profile import profile_json
from toolchain.deployment.profiling import DEFAULT_RUNS, profile_folder
from toolchain.deployment.verification import verification_json, verify_model
from toolchain.device.firmware import MANIFEST, load_firmware
from toolchain.errors import (
    DoesNotFitError,
    NotJudgedError,
    ResultError,
    ThimbleError,
    UnsupportedError,
    error_json,
)
from toolchain.files import scratch_folder
from toolchain.memory.firmware_size import check_fit, estimated_need
from toolchain.planner import plan_model
from toolchain.quantise.float_use import float_json
from toolchain.report.latency import predict_latency
from toolchain.report.plan import plan_json
from toolchain.sweep.cases import Case, check_tool
from toolchain.sweep.jobs import Shared

VERIFY_RUNS = 20
_LONG = ("operators", "tensors", "buffers", "kinds", "blocks", "functions", "differences")
"""Lists that a row leaves out: `thimble plan --json` and the others have them."""
_INTERNAL = 70
_LAST_LINES = 12
_KILLER = "a worker died each time that it began this, or was killed; memory may have run out"


@dataclass(frozen=True)
class Place:
    """A board of a bench, in what can be sent: the fields of `bench_file.BenchBoard`."""

    board: str
    label: str
    port: str
    probe: str
    runner: str
    place: str
    power_cycle: tuple[str, ...]
    coordinator: str

    @classmethod
    def of(cls, board: BenchBoard) -> Place:
        sent = {name: value for name, value in vars(board).items() if name != "board"}
        return cls(board.name, **sent)

    def on_bench(self) -> BenchBoard:
        return BenchBoard(**{**vars(self), "board": find_board(self.board)})


@dataclass(frozen=True)
class Done:
    """The outcome of a case.

    fields  the command's own --json, as far as it came, without its longest lists
    error   as the field `error` of --json; None where all went well
    final   whether it would come out the same again; if not, a later sweep computes it again
    """

    fields: Mapping[str, Any]
    error: Mapping[str, Any] | None
    final: bool
    seconds: float


def work(case: Case, model: Shared, place: Place | None = None) -> Done:
    """Compute a case. Raises nothing: an error is an outcome, too."""
    begin = time.perf_counter()
    fields: dict[str, Any] = {}
    error, final = None, True
    try:
        check_tool(case)
        with scratch_folder() as folder:
            file = folder / Path(case.file).name
            file.write_bytes(model.data)
            for part in _WORKS[case.do](case, file, folder / "build", place):
                fields |= {name: value for name, value in part.items() if name not in _LONG}
    except ThimbleError as raised:
        error = error_json(raised, raised.exit_code)
        final = isinstance(
            raised, DoesNotFitError | UnsupportedError | NotJudgedError | _DiffersError
        )
    except (Exception, MemoryError) as raised:
        error, final = error_json(raised, _INTERNAL), False
        error["traceback"] = traceback.format_exc().splitlines()[-_LAST_LINES:]
    return Done(fields, error, final, time.perf_counter() - begin)


def killed(where: str) -> Done:
    """The outcome of a case whose workers all died, the last of them `where`."""
    error = {
        "kind": "worker-died",
        "message": f"{_KILLER} (last on {where})",
        "exit_code": _INTERNAL,
    }
    return Done({}, error, final=False, seconds=0.0)


class _DiffersError(ResultError):
    """The outputs are not those of the reference."""


Parts = Iterable[Mapping[str, Any]]


def _plan(case: Case, file: Path, folder: Path, place: Place | None) -> Parts:
    costs = cost_model(case.board)
    plan = plan_model(file, case.board, case.options, costs=costs)
    yield plan_json(plan, estimated_need(plan), predict_latency(plan, costs))
    yield float_json(plan)
    check_fit(plan)


def _compile(case: Case, file: Path, folder: Path, place: Place | None) -> Parts:
    compiled = compile_model(file, case.board, folder, case.options)
    yield compiled_json(compiled.plan, compiled.sizes, compiled.sources.stack)


def _verify(case: Case, file: Path, folder: Path, place: Place | None) -> Parts:
    with _on_place(case, file, folder, place) as port:
        runs = VERIFY_RUNS if case.runs is None else case.runs
        result = verify_model(
            file, case.board, runs, case.seed, port=port, options=case.options, out=folder
        )
    yield _predicted(
        compiled_json(result.compiled.plan, result.compiled.sizes, result.compiled.sources.stack)
    )
    yield verification_json(result)
    if not result.passed:
        raise _DiffersError(
            f"{result.differing:,} of {result.elements:,} elements differ from "
            f"{result.reference}'s, by up to {result.max_difference:g}"
        )
    if result.not_independent:
        raise NotJudgedError(f"no independent runtime judged: {result.not_independent}")


def _profile(case: Case, file: Path, folder: Path, place: Place | None) -> Parts:
    compiled = compile_model(file, case.board, folder, case.options)
    yield _predicted(compiled_json(compiled.plan, compiled.sizes, compiled.sources.stack))
    with _on_place(case, file, folder, place) as port:
        profile = profile_folder(folder, port, DEFAULT_RUNS if case.runs is None else case.runs)
    fields = profile_json(profile)
    yield fields
    yield {"latency": {name: fields[name] for name in ("total", "unit", "milliseconds", "basis")}}


@contextmanager
def _on_place(case: Case, file: Path, folder: Path, place: Place | None) -> Iterator[str | None]:
    """The port of a real board that holds the case's firmware; None where one is emulated."""
    if place is None:
        yield None
        return
    board = place.on_bench()
    if not (folder / MANIFEST).exists():
        compile_model(file, case.board, folder, case.options)
    with held(board) as port:
        start(board, load_firmware(folder), port).close()
        yield board.located()


def _predicted(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a compilation; its latency under a name of its own, too."""
    return {**fields, "predicted": fields["latency"]}


_WORKS: Mapping[str, Callable[[Case, Path, Path, Place | None], Parts]] = MappingProxyType(
    {"plan": _plan, "compile": _compile, "verify": _verify, "profile": _profile}
)
