"""Flash as estimated before linking, beside that of the linked firmware.

    python -m benchmarks.flash [--models DIR] [--only TEXT] [--json FILE]

Ten models, each for a board of its own, operators whole (`CASES`). Nothing is run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from benchmarks.silicon import SHARED_MODELS
from toolchain import compile_model
from toolchain.memory.firmware_size import estimated_need
from toolchain.planning.options import PlanOptions

SMALLEST = ("--models {shared}/models --only hello_world",)
CASES = {
    "tflm_hello_world_int8": "nucleo-f446re",
    "mlperf_tiny_kws_dscnn_int8": "nucleo-l4r5zi",
    "mlperf_tiny_ad_fcae_int8": "mps2-an385",
    "mlperf_tiny_ic_resnet8_int8": "netduinoplus2",
    "tflm_micro_speech_int8": "mps2-an385-v6m",
    "mlperf_tiny_vww_mbv1_025_96_int8": "nucleo-h743zi",
    "mlperf_tiny_sww_1dcnn_int8": "mps3-an547",
    "tflm_keyword_scrambled_8bit": "mps2-an500",
    "tflm_mnist_lstm_int8": "nucleo-f767zi",
    "tflm_person_detect_int8": "mps2-an505",
}


@dataclass(frozen=True)
class Row:
    """A model for a board. `error`: estimated / linked - 1."""

    model: str
    board: str
    estimated_bytes: int
    linked_bytes: int
    error: float


def rows(models: Path, only: str) -> Iterator[Row]:
    """Raises ThimbleError as compiling does."""
    for model, board in CASES.items():
        if only not in model:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "build"
            made = compile_model(models / f"{model}.tflite", board, out, PlanOptions().unsplit)
        assert made.sizes is not None
        estimated, linked = estimated_need(made.plan).flash_bytes, made.sizes.flash_bytes
        yield Row(model, board, estimated, linked, estimated / linked - 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, default=SHARED_MODELS, help="folder of .tflite")
    parser.add_argument("--only", default="", help="models whose name contains this")
    json_option(parser)
    given = parser.parse_args()
    found = list(rows(given.models, given.only))
    table = Table("model", "board")
    for title in ("estimated B", "linked B", "error"):
        table.add_column(title, justify="right")
    for row in found:
        sizes = f"{row.estimated_bytes:,}", f"{row.linked_bytes:,}"
        table.add_row(row.model, row.board, *sizes, f"{row.error:+.1%}")
    Console(width=120).print(table)
    write_results(given.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
