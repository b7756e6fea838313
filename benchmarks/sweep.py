"""Every operator kind on random configurations, our C beside its reference byte for byte.

    .venv/bin/python -m benchmarks.sweep [--cases 300] [--board-cases 50] [--board NAME ...]
                                         [--kind NAME ...] [--seed S] [--json FILE]
                                         [--jobs N | --dask tcp://HOST:PORT]

The kinds are those of `thimble ops`; one without a generator of configurations counts as a failure.
A case is one operator: written as a TFLite file, read back, planned, compiled, run twice. Three in
ten have scales far from what converters choose, a quarter of the weights are int4. The reference is
LiteRT's kernel (our NumPy reference for what only ONNX files or rewrites bring, and where LiteRT's
own kernel is broken); of float32 functions like exp the last bits may differ. Cases that we or
LiteRT refuse are counted by reason. `--cases` run on this machine; the first `--board-cases` of
each kind also run in emulation, many in one firmware. A difference prints its case, which `--kind`,
`--seed` and `--cases` bring back; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cases import Case, Reference, RefusedCaseError, from_litert, reason  # noqa: E402
from benchmarks._results import json_option, write_results  # noqa: E402
from tests.support.host import model_of, plan_of  # noqa: E402
from tests.support.litert import OWN_FUNCTIONS  # noqa: E402
from toolchain.boards import board  # noqa: E402
from toolchain.codegen import generate  # noqa: E402
from toolchain.device.build import build  # noqa: E402
from toolchain.device.host import HostProgram  # noqa: E402
from toolchain.device.host import build as build_host  # noqa: E402
from toolchain.device.session import open_board  # noqa: E402
from toolchain.errors import ThimbleError  # noqa: E402
from toolchain.ir.merged import merged  # noqa: E402
from toolchain.kernels import cmsis_nn  # noqa: E402
from toolchain.ops import forms, kernel_of  # noqa: E402  # noqa: E402
from toolchain.ops.spec import Array  # noqa: E402
from toolchain.sweep.cluster import DaskPool  # noqa: E402
from toolchain.sweep.jobs import Job, Pool, run  # noqa: E402
from toolchain.sweep.local import LocalPool  # noqa: E402

SMALLEST = ("--cases 1 --board-cases 1 --kind relu --board netduinoplus2",)
BOARDS = ("netduinoplus2", "mps2-an500", "mps2-an505", "mps3-an547")
HOST = "host"
_HOST_GROUP = 100
_PORTS = 240
"""A firmware has at most 255 inputs, and as many outputs."""
_ENDS_BYTES = 64 * 1024
_CONSTANT_BYTES = 400 * 1024
_SHOWN = 5


@dataclass
class Tally:
    """What ran in one place."""

    cases: int = 0
    bytes: int = 0
    differing: int = 0

    def __str__(self) -> str:
        return f"{self.differing:,} of {self.bytes:,}" if self.cases else "-"


@dataclass
class Row:
    """One kind. `missing`: why there are no cases of it; '' where there are."""

    kind: str
    reference: str
    cases: int = 0
    compiled: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    places: dict[str, Tally] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    missing: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.missing or self.differences)

    def compare(self, place: str, case: Case, turn: int, got: Sequence[Array]) -> None:
        tally = self.places.setdefault(place, Tally())
        tally.cases += turn == 0
        for one, other in zip(got, case.wanted[turn], strict=True):
            if self.kind in OWN_FUNCTIONS:
                one = settled(one, other)
            mine = np.ascontiguousarray(one).reshape(-1).view(np.uint8)
            theirs = np.ascontiguousarray(other).reshape(-1).view(np.uint8)
            differing = int((mine != theirs).sum())
            tally.bytes += mine.size
            tally.differing += differing
            if differing:
                self.differences.append(f"{place}: {differing} bytes of {case}")


def settled(got: Array, want: Array) -> Array:
    """`want` where `got` differs from it by at most 2**-21 of its largest."""
    largest = np.abs(want[np.isfinite(want)]).max(initial=0)
    with np.errstate(invalid="ignore"):
        near = np.abs(got - want) <= 2.0**-21 * largest
    chosen: Array = np.where(near | (np.isnan(got) & np.isnan(want)), want, got)
    return chosen


def read_cases(row: Row, count: int, seed: int, reference: Reference) -> list[Case]:
    """The cases of a kind that the reference runs; the others are counted in `row`."""
    cases = []
    for index in range(count):
        row.cases += 1
        try:
            cases.append(reference.case(row.kind, index, seed))
        except RefusedCaseError as error:
            row.refused[str(error)] += 1
        except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
            row.missing = f"its generator fails: {type(error).__name__}: {error}"
            return []
    return cases


def run_on_host(row: Row, cases: Sequence[Case]) -> list[Case]:
    """Compare on this machine; the cases that compile."""
    models, compiled = [], []
    for case in cases:
        try:
            models.append(model_of(plan_of(case.graph), f"m{len(models) % _HOST_GROUP}"))
        except ThimbleError as error:
            row.refused[reason(error)] += 1
        else:
            compiled.append(case)
    row.compiled = len(compiled)
    for first in range(0, len(models), _HOST_GROUP):
        group = models[first : first + _HOST_GROUP]
        with tempfile.TemporaryDirectory() as folder:
            program = build_host(group, cmsis_nn.find(), Path(folder))
            with HostProgram(program, group) as running:
                for place, case in enumerate(compiled[first : first + _HOST_GROUP]):
                    for turn, given in enumerate(case.inputs):
                        got = running.run(given, place, restart=turn == 0)
                        row.compare(HOST, case, turn, got)
    return compiled


def batches(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """Runs of cases that share a firmware: all their ends lie in RAM at once."""
    batch: list[Case] = []
    used = np.zeros(4)
    limits = np.array([_PORTS, _PORTS, _ENDS_BYTES, _CONSTANT_BYTES])
    for case in cases:
        graph = case.graph
        ends = (*graph.inputs, *graph.outputs)
        constants = [t for t in graph.tensors.values() if t.is_constant]
        need = np.array(
            [
                len(graph.inputs),
                len(graph.outputs),
                sum(graph.tensors[name].size_bytes for name in ends),
                sum(t.size_bytes for t in constants),
            ]
        )
        if (need > limits).any():
            continue
        if batch and (used + need > limits).any():
            yield batch
            batch, used = [], np.zeros(4)
        batch.append(case)
        used = used + need
    if batch:
        yield batch


def run_on_board(name: str, cases: Sequence[Case], rows: dict[str, Row]) -> None:
    """Compare in one firmware; each case's tensors bear its number."""
    target, graph = board(name), merged([case.graph for case in cases])
    plan = replace(plan_of(graph, target.core), board=name)
    sources = generate(plan, target.core, cmsis_nn.find(), name="sweep")
    with tempfile.TemporaryDirectory() as folder:
        firmware = build([(plan, sources)], target, Path(folder))
        with open_board(firmware) as session:
            for turn in range(len(cases[0].inputs)):
                given = [value for case in cases for value in case.inputs[turn]]
                done = session.run(given).outputs
                for index, case in enumerate(cases):
                    got = [done[f"g{index}_{output}"] for output in case.graph.outputs]
                    rows[case.kind].compare(name, case, turn, got)


def fits_core(case: Case, name: str) -> bool:
    """Whether the operator has a kernel on the board's core."""
    (op,) = case.graph.ops
    try:
        kernel_of(op, case.graph, board(name).core)
    except ThimbleError:
        return False
    return True


def print_rows(rows: Sequence[Row], console: Console) -> None:
    places = list(dict.fromkeys(place for row in rows for place in row.places))
    table = Table(title="operators: differing bytes of all compared", header_style="bold")
    table.add_column("operator", no_wrap=True)
    table.add_column("reference")
    for heading in ("cases", "compiled", "refused", *places):
        table.add_column(heading, justify="right")
    for row in rows:
        if row.missing:
            table.add_row(row.kind, "missing")
            continue
        cells = (str(row.places.get(place, Tally())) for place in places)
        counts = (row.cases, row.compiled, row.refused.total())
        table.add_row(row.kind, row.reference, *map(str, counts), *cells)
    console.print(table)
    for row in rows:
        for text, count in row.refused.most_common():
            _say(console, f"refused: {row.kind}: {count} x {text}")
    for row in rows:
        if row.missing:
            _say(console, f"missing: {row.kind}: {row.missing}")
        for text in row.differences[:_SHOWN]:
            _say(console, f"differs: {text}")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def sweep(
    kinds: Sequence[str],
    cases: int,
    boards: Sequence[str] = (),
    board_cases: int = 0,
    seed: int = 0,
    progress: Console | None = None,
) -> list[Row]:
    """Rows of `kinds`: `cases` of each on this machine, the first `board_cases` on `boards`."""
    rows = {kind: Row(kind, "LiteRT" if from_litert(kind) else "NumPy") for kind in kinds}
    shown = progress or Console(quiet=True)
    emulated: list[Case] = []
    with Reference() as reference:
        for row in track(rows.values(), "kinds", console=shown, transient=True):
            compiled = run_on_host(row, read_cases(row, cases, seed, reference))
            emulated += [case for case in compiled if case.index < board_cases]
    for name in boards:
        able = [case for case in emulated if fits_core(case, name)]
        for batch in track(list(batches(able)), name, console=shown, transient=True):
            run_on_board(name, batch, rows)
    return list(rows.values())


def on_workers(pool: Pool, kinds: Sequence[str], *given: Any) -> list[Row]:
    """As `sweep(kinds, *given)`, each kind by itself on the workers of `pool`."""
    jobs = [Job(kind, sweep, ([kind], *given)) for kind in kinds]
    results = {result.job.key: result for result in run(jobs, pool)}
    rows = []
    for kind in kinds:
        died = Row(kind, "", missing=f"its workers died, the last on {results[kind].where}")
        rows += [died] if results[kind].died else results[kind].value
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=300, help="of each kind on this machine")
    parser.add_argument("--board-cases", type=int, default=50, help="of each kind on each board")
    parser.add_argument(
        "--board",
        action="append",
        choices=[HOST, *BOARDS],
        help=f"may be repeated; default all; {HOST} alone for no emulation",
    )
    parser.add_argument("--kind", action="append", choices=list(forms()), help="may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    json_option(parser)
    workers = parser.add_mutually_exclusive_group()
    workers.add_argument("--jobs", type=int, default=1, help="worker processes here")
    workers.add_argument("--dask", metavar="tcp://HOST:PORT", help="the workers of a Dask cluster")
    arguments = parser.parse_args()
    boards = [name for name in arguments.board or BOARDS if name != HOST]
    kinds = arguments.kind or list(forms())
    given = (arguments.cases, boards, arguments.board_cases, arguments.seed)
    if arguments.dask or arguments.jobs > 1:
        made = DaskPool(arguments.dask) if arguments.dask else LocalPool(arguments.jobs)
        with made as pool:
            rows = on_workers(pool, kinds, *given)
    else:
        rows = sweep(kinds, *given, Console(stderr=True))
    print_rows(rows, Console(width=170))
    found = [{**asdict(row), "refused": dict(row.refused)} for row in rows]
    write_results(arguments.json, found)
    return 1 if any(row.failed for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
