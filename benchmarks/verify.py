"""Every model of a folder on every QEMU board that holds it: differing output elements.

    .venv/bin/python benchmarks/verify.py [--models DIR] [--boards A,B] [--runs 20] [--json FILE]

A cell shows differing elements of all elements compared; "fits not" where the board is too small.
Models that cannot be compiled are listed with the first line of the reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from toolchain import load_model, verify_model
from toolchain.errors import DoesNotFitError, ThimbleError

SMALLEST = ("--models examples/digits --only digits_int8.tflite --runs 1 --boards mps2-an500",)
SHARED_MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
BOARDS = "netduinoplus2,mps2-an500,mps3-an547"


@dataclass(frozen=True)
class Cell:
    """One model on one board. `passed` is None where it does not fit."""

    model: str
    board: str
    passed: bool | None
    text: str
    differing: int = 0
    elements: int = 0
    instructions: int = 0
    arena_bytes: int = 0
    reference: str = ""
    seconds: float = 0.0


def verify(file: Path, board: str, runs: int) -> Cell:
    begin = time.perf_counter()
    try:
        result = verify_model(file, board, runs=runs)
    except DoesNotFitError:
        return Cell(file.name, board, None, "fits not")
    except ThimbleError as error:
        return Cell(file.name, board, False, str(error).splitlines()[0][:60])
    worst = f" (by {result.max_difference:g})" if result.differing else ""
    return Cell(
        file.name,
        board,
        result.passed and not result.not_independent,
        f"{result.differing:,} of {result.elements:,}{worst}",
        result.differing,
        result.elements,
        result.count,
        result.compiled.plan.arena.size_bytes,
        result.reference,
        time.perf_counter() - begin,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, default=SHARED_MODELS)
    parser.add_argument("--boards", default=BOARDS)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="", help="models whose name contains this")
    json_option(parser)
    arguments = parser.parse_args()
    console = Console(width=170)
    boards = arguments.boards.split(",")
    table = Table(header_style="bold", title=f"differing elements in {arguments.runs} runs")
    table.add_column("model", no_wrap=True)
    for heading in (*boards, "arena B"):
        table.add_column(heading, justify="right")
    cells, refused = [], []
    files = sorted(p for p in arguments.models.glob("*") if p.suffix in (".tflite", ".onnx"))
    for file in (f for f in files if arguments.only in f.name):
        try:
            load_model(file)
        except ThimbleError as error:
            refused.append((file.name, str(error)))
            continue
        row = []
        for board in boards:
            with console.status(f"{file.name} on {board}"):
                row.append(verify(file, board, arguments.runs))
            print(file.name, board, row[-1].text, f"{row[-1].seconds:.1f} s", file=sys.stderr)
        cells += row
        arena = max(cell.arena_bytes for cell in row)
        table.add_row(file.name, *(cell.text for cell in row), f"{arena:,}")
    console.print(table)
    for name, reason in refused:
        console.print(f"refused: {name}: {reason}", markup=False, highlight=False)
    write_results(arguments.json, cells)
    return 0 if cells and all(cell.passed is not False for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main())
