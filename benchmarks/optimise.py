"""MLPerf Tiny's models as planned for one board, by each way to use its flash and RAM.

    python -m benchmarks.optimise [--models DIR] [--only TEXT] [--board BOARD] [--json FILE]

The ways are those of `benchmarks.copies`, and `--optimise size`. All columns are predictions: bytes
of code, bytes of RAM that copies of constants and code take, cycles of an inference. Nothing is
compiled.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from benchmarks.copies import MODELS, WAYS
from benchmarks.silicon import SHARED_MODELS
from toolchain.memory.firmware_size import estimated_need
from toolchain.planner import plan_model
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.report.latency import predict_latency

SMALLEST = ("--models {shared}/models --only ad_fcae",)
BOARD = "nucleo-l4r5zi"
ALL_WAYS: Mapping[str, PlanOptions] = {
    **WAYS,
    "--optimise size": PlanOptions(optimise=Optimise.SIZE),
}


@dataclass(frozen=True)
class Row:
    """A model, planned one way. `copied_bytes`: RAM that copies of constants and code take."""

    model: str
    way: str
    code_bytes: int
    copied_bytes: int
    cycles: int


def rows(models: Path, names: Sequence[str], board: str) -> Iterator[Row]:
    """Raises ThimbleError as planning does."""
    for model in names:
        for way, options in ALL_WAYS.items():
            plan = plan_model(models / f"{model}.tflite", board, options)
            code, copied = estimated_need(plan).code_bytes, plan.copied.size_bytes
            yield Row(model, way, code, copied, predict_latency(plan).total)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, default=SHARED_MODELS, help="folder of .tflite")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--board", default=BOARD)
    json_option(parser)
    given = parser.parse_args()
    names = [name for name in MODELS if given.only in name]
    found = list(rows(given.models, names, given.board))
    table = Table("model", "way")
    for title in ("code B", "copies B", "M cycles"):
        table.add_column(title, justify="right")
    for row in found:
        sizes = f"{row.code_bytes:,}", f"{row.copied_bytes:,}"
        table.add_row(row.model, row.way, *sizes, f"{row.cycles / 1e6:.3f}")
    Console(width=120).print(table)
    write_results(given.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
