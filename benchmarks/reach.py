"""Reach: every model file, our C beside its reference byte for byte.

    .venv/bin/python benchmarks/reach.py [--models DIR] [--board NAME] [--runs 3] [--only TEXT]
                                         [--json FILE] [--no-split]

The verdict against the reference (LiteRT's kernels, or TFLM where LiteRT cannot run the file; ONNX
Runtime within 1; with --float within 2^-16 of an output's largest element), the arena beside TFLM's
whole arena, instructions in QEMU. Operators are split where that is nearly free, as `compile` does;
with --no-split they stay whole. A model that the board has no room for runs on this machine.
`benchmarks/sweep.py` does the same with random operators, `benchmarks/ecosystem/make.py` makes more
models with TensorFlow and PyTorch.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._results import json_option, write_results  # noqa: E402
from benchmarks.arena import tflm_bytes  # noqa: E402
from toolchain import load_model, verify_model  # noqa: E402
from toolchain.errors import DoesNotFitError, ThimbleError, UnsupportedError  # noqa: E402
from toolchain.planning.options import PlanOptions  # noqa: E402

SMALLEST = ("--models examples/digits --only digits_int8.tflite --runs 1",)
SHARED_MODELS = ROOT.parent / "shared" / "models"


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
    made_by: str = ""


def makers(folder: Path) -> dict[str, str]:
    """File names and the tools that made them, where benchmarks/ecosystem/make.py wrote them."""
    index = folder / "models.json"
    return dict(json.loads(index.read_text())) if index.exists() else {}


def model_rows(file: Path, board_name: str, runs: int, options: PlanOptions) -> list[ModelRow]:
    """What becomes of a model, and of one that needs leave for float with it as well."""
    row = model_row(file, board_name, runs, options)
    if row.verdict != "refused" or "--float" not in row.detail:
        return [row]
    with_leave = model_row(file, board_name, runs, replace(options, allow_float=True))
    return [row, replace(with_leave, model=f"{file.name} --float")]


def model_row(file: Path, board_name: str, runs: int, options: PlanOptions) -> ModelRow:
    begin = time.perf_counter()
    try:
        load_model(file)
    except ThimbleError as error:
        return ModelRow(file.name, "refused", str(error))
    where, result = board_name, None
    try:
        try:
            result = verify_model(file, board_name, runs=runs, options=options)
        except DoesNotFitError:
            where = "host"
            result = verify_model(file, where, runs=runs, options=options)
    except UnsupportedError as error:
        return ModelRow(file.name, "refused", str(error))
    except ThimbleError as error:
        return ModelRow(file.name, "failed", str(error), where)
    theirs = tflm_bytes(file) if file.suffix == ".tflite" else None
    text = f"{result.differing:,} of {result.elements:,}"
    if result.differing:
        text += f" by at most {result.max_difference:g}"
    if result.by_operators is not None:
        text += f" (operators alone: {result.by_operators.max_difference})"
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
    known = any(row.made_by for row in rows)
    if known:
        table.add_column("made by")
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
            *((row.made_by,) if known else ()),
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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=str(SHARED_MODELS))
    parser.add_argument("--board", default="mps2-an500")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--no-split", action="store_true", help="keep operators whole")
    json_option(parser)
    arguments = parser.parse_args()
    console, progress = Console(width=170), Console(stderr=True)
    files = sorted(Path(arguments.models).glob("*"))
    files = [f for f in files if f.suffix in (".tflite", ".onnx") and arguments.only in f.name]
    options = PlanOptions(nearly_free=not arguments.no_split)
    models, made_by = [], makers(Path(arguments.models))
    for file in track(files, "models", console=progress, transient=True):
        for row in model_rows(file, arguments.board, arguments.runs, options):
            models.append(replace(row, made_by=made_by.get(file.name, "")))
            print(row.model, row.verdict, row.detail.splitlines()[0], file=sys.stderr)
    print_models(models, console)
    write_results(arguments.json, {"models": models})
    return 1 if any(row.verdict in ("differs", "failed") for row in models) else 0


if __name__ == "__main__":
    sys.exit(main())
