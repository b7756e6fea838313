"""Reach: every model file and hundreds of random operators, our C beside LiteRT byte for byte.

    .venv/bin/python benchmarks/reach.py [--models DIR] [--board NAME] [--runs 3] [--only TEXT]
                                         [--configurations 200] [--emulated 8] [--json FILE]

Models: verdict against the reference (LiteRT's kernels, or TFLM where LiteRT refuses the file; ONNX
Runtime within 1), arena beside TFLM's whole arena, instructions in QEMU. A model that the board has
no room for runs on this machine. Operators: `--configurations` random ones of each kind on this
machine and `--emulated` on each of three boards; cells show differing of all bytes compared.
`--models ""` leaves out the models, `--configurations 0` the operators.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.arena import tflm_bytes  # noqa: E402
from tests.support.host import host_model, random_inputs, reference_outputs  # noqa: E402
from tests.support.litert import BEYOND_LITERT, PLAIN_KERNELS, run_litert  # noqa: E402
from tests.support.merge import merged  # noqa: E402
from tests.support.tflite_writer import tflite_bytes  # noqa: E402
from toolchain import cmsis_nn, load_model, verify_model  # noqa: E402
from toolchain.boards import board  # noqa: E402
from toolchain.codegen import generate  # noqa: E402
from toolchain.device.build import build  # noqa: E402
from toolchain.device.host import HostProgram  # noqa: E402
from toolchain.device.host import build as build_host  # noqa: E402
from toolchain.device.session import open_board  # noqa: E402
from toolchain.errors import DoesNotFitError, ThimbleError  # noqa: E402
from toolchain.ir import Graph  # noqa: E402
from toolchain.ops import specs  # noqa: E402
from toolchain.ops.spec import Array  # noqa: E402
from toolchain.planner import plan_graph  # noqa: E402

SHARED_MODELS = ROOT.parent / "shared" / "models"
BOARDS = ("netduinoplus2", "mps2-an500", "mps3-an547")
GROUP = 100


@dataclass(frozen=True)
class ModelRow:
    """`verdict`: passed, differs, refused or failed."""

    model: str
    verdict: str
    detail: str
    board: str = ""
    elements: int = 0
    differing: int = 0
    max_difference: float = 0.0
    reference: str = ""
    arena_bytes: int = 0
    tflm_arena_bytes: int = 0
    instructions: int = 0
    seconds: float = 0.0


def model_row(file: Path, board_name: str, runs: int) -> ModelRow:
    begin = time.perf_counter()
    try:
        load_model(file)
    except ThimbleError as error:
        return ModelRow(file.name, "refused", str(error))
    where, result = board_name, None
    try:
        try:
            result = verify_model(file, board_name, runs=runs)
        except DoesNotFitError:
            where = "host"
            result = verify_model(file, where, runs=runs)
    except ThimbleError as error:
        return ModelRow(file.name, "failed", str(error), where)
    theirs = tflm_bytes(file) if file.suffix == ".tflite" else None
    text = f"{result.differing:,} of {result.elements:,}"
    if result.differing:
        text += f" by at most {result.max_difference:g}"
    return ModelRow(
        file.name,
        "passed" if result.passed else "differs",
        text,
        where,
        result.elements,
        result.differing,
        result.max_difference,
        result.reference,
        result.compiled.plan.arena.size_bytes,
        theirs[1] if theirs else 0,
        result.count if where != "host" else 0,
        time.perf_counter() - begin,
    )


def print_models(rows: Sequence[ModelRow], console: Console) -> None:
    table = Table(title="models", header_style="bold")
    table.add_column("model", no_wrap=True)
    for heading in ("verdict", "differing", "reference", "ran on"):
        table.add_column(heading)
    for heading in ("arena B", "TFLM B", "ratio", "instructions"):
        table.add_column(heading, justify="right")
    for row in rows:
        if row.verdict in ("refused", "failed"):
            continue
        ratio = f"{row.arena_bytes / row.tflm_arena_bytes:.2f}" if row.tflm_arena_bytes else "-"
        table.add_row(
            row.model,
            row.verdict,
            row.detail,
            row.reference,
            row.board,
            f"{row.arena_bytes:,}",
            f"{row.tflm_arena_bytes:,}" if row.tflm_arena_bytes else "-",
            ratio,
            f"{row.instructions:,}" if row.instructions else "-",
        )
    console.print(table)
    for row in rows:
        if row.verdict in ("refused", "failed"):
            text = f"{row.verdict}: {row.model}: {row.detail}"
            console.print(text, markup=False, highlight=False)


@dataclass
class Tally:
    """Bytes compared of one kind in one place."""

    bytes: int = 0
    differing: int = 0
    configurations: int = 0

    def add(self, got: Sequence[Array], want: Sequence[Array]) -> None:
        self.configurations += 1
        for one, other in zip(got, want, strict=True):
            mine = np.ascontiguousarray(one).view(np.uint8).reshape(-1)
            theirs = np.ascontiguousarray(other).view(np.uint8).reshape(-1)
            self.bytes += mine.size
            self.differing += int((mine != theirs).sum())

    def __str__(self) -> str:
        return f"{self.differing:,} of {self.bytes:,}" if self.configurations else "-"


@dataclass
class OperatorRow:
    kind: str
    reference: str
    configurations: int
    places: dict[str, Tally] = field(default_factory=dict)


def expected(graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """LiteRT's answer; our NumPy reference's where LiteRT has no such kernel."""
    if _from_litert(graph.ops[0].kind):
        return tuple(run_litert(tflite_bytes(graph), inputs))
    return reference_outputs(graph, inputs)


def _from_litert(kind: str) -> bool:
    return specs()[kind].tflite is not None and kind not in PLAIN_KERNELS | BEYOND_LITERT


def operator_row(kind: str, configurations: int, emulated: int, seed: int) -> OperatorRow:
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])
    graphs = [specs()[kind].sample(rng) for _ in range(configurations)]
    inputs = [random_inputs(graph, rng) for graph in graphs]
    wanted = [expected(graph, given) for graph, given in zip(graphs, inputs, strict=True)]
    reference = "LiteRT" if _from_litert(kind) else "NumPy"
    row = OperatorRow(kind, reference, configurations, {"host": Tally()})
    for first in range(0, len(graphs), GROUP):
        group = range(first, min(first + GROUP, len(graphs)))
        models = [host_model(graphs[index], f"m{index}") for index in group]
        with tempfile.TemporaryDirectory() as folder:
            program = build_host(models, cmsis_nn.find(), Path(folder))
            with HostProgram(program, models) as running:
                for place, index in enumerate(group):
                    row.places["host"].add(running.run(inputs[index], place), wanted[index])
    few = range(min(emulated, len(graphs)))
    for name in BOARDS if few else ():
        row.places[name] = _on_board(name, [graphs[i] for i in few], inputs, wanted)
    return row


def _on_board(
    name: str,
    graphs: Sequence[Graph],
    inputs: Sequence[Sequence[Array]],
    wanted: Sequence[Sequence[Array]],
) -> Tally:
    """All in one firmware."""
    tally, target = Tally(), board(name)
    graph = merged(graphs)
    plan = plan_graph(graph, target)
    sources = generate(plan, target.core, cmsis_nn.find(), name="m")
    with tempfile.TemporaryDirectory() as folder:
        firmware = build([(plan, sources)], target, Path(folder))
        with open_board(firmware) as session:
            given = [value for index in range(len(graphs)) for value in inputs[index]]
            done = session.run(given).outputs
    for index, single in enumerate(graphs):
        tally.add([done[f"g{index}_{name}"] for name in single.outputs], wanted[index])
    return tally


def print_operators(rows: Sequence[OperatorRow], console: Console) -> None:
    places = ["host", *(name for name in BOARDS if any(name in row.places for row in rows))]
    table = Table(title="operators: differing bytes of all compared", header_style="bold")
    table.add_column("operator", no_wrap=True)
    for heading in ("reference", "configurations", *places):
        table.add_column(heading, justify="left" if heading == "reference" else "right")
    for row in rows:
        cells = (str(row.places.get(place, Tally())) for place in places)
        table.add_row(row.kind, row.reference, str(row.configurations), *cells)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=str(SHARED_MODELS))
    parser.add_argument("--board", default="mps2-an500")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="models or operators whose name contains this")
    parser.add_argument("--configurations", type=int, default=200)
    parser.add_argument("--emulated", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    console, progress = Console(width=170), Console(stderr=True)
    files = sorted(Path(arguments.models).glob("*")) if arguments.models else []
    files = [f for f in files if f.suffix in (".tflite", ".onnx") and arguments.only in f.name]
    models = []
    for file in track(files, "models", console=progress, transient=True):
        models.append(model_row(file, arguments.board, arguments.runs))
        print(file.name, models[-1].verdict, models[-1].detail.splitlines()[0], file=sys.stderr)
    if models:
        print_models(models, console)
    kinds = [kind for kind in specs() if arguments.only in kind] if arguments.configurations else []
    operators = []
    for kind in track(kinds, "operators", console=progress, transient=True):
        row = operator_row(kind, arguments.configurations, arguments.emulated, arguments.seed)
        operators.append(row)
        print(kind, *(f"{place} {tally};" for place, tally in row.places.items()), file=sys.stderr)
    if operators:
        print_operators(operators, console)
    if arguments.json:
        rows = {"models": list(map(asdict, models)), "operators": list(map(asdict, operators))}
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    differing = sum(tally.differing for row in operators for tally in row.places.values())
    wrong = [row for row in models if row.verdict in ("differs", "failed")]
    return 1 if differing or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
