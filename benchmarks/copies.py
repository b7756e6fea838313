"""Constants and code that the start-up copies to RAM: the cycles that this saves, chip by chip.

    python -m benchmarks.copies [--models DIR] [--only TEXT] [--chips CHIP,..] [--json FILE]

MLPerf Tiny's models in three ways: all constants in flash, as `compile` plans them, and with
`--optimise speed`. Each is compiled for `mps2-an500:CHIP`, run in QEMU on 3 random inputs, compared
with its reference, and read as the chip (docs/time.md).
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
from benchmarks.firmware import MLPERF_TINY, measure
from benchmarks.silicon import SHARED_MODELS
from toolchain.planning.options import Optimise, PlanOptions

SMALLEST = ("--models {shared}/models --only ad_fcae --chips stm32h7a3",)
CHIPS = ("stm32h7a3", "stm32h743", "stm32f767", "stm32f746")
MODELS = tuple(name for name in MLPERF_TINY if "sww" not in name)
WAYS: Mapping[str, PlanOptions] = {
    "in flash": PlanOptions(copy_constants=False),
    "default": PlanOptions(),
    "--optimise speed": PlanOptions(optimise=Optimise.SPEED),
}


@dataclass(frozen=True)
class Row:
    """A model on a chip. `matches`: no output byte differs from the reference."""

    model: str
    chip: str
    way: str
    cycles: int
    ram_bytes: int
    matches: bool


def rows(models: Path, names: Sequence[str], chips: Sequence[str]) -> Iterator[Row]:
    """Raises ThimbleError as compiling does."""
    for model in names:
        for way, options in WAYS.items():
            for chip in chips:
                file, board = models / f"{model}.tflite", f"mps2-an500:{chip}"
                found = measure(file, board, (chip,), options, beside_arm=False)
                (cycles,) = found.cycles.values()
                yield Row(model, chip, way, cycles, found.ram_bytes, found.matches)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, default=SHARED_MODELS, help="folder of .tflite")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--chips", default=",".join(CHIPS), help="by comma")
    json_option(parser)
    given = parser.parse_args()
    names = [name for name in MODELS if given.only in name]
    found = []
    table = Table("model", "chip", "way")
    for title in ("M cycles", "RAM B", "exact"):
        table.add_column(title, justify="right")
    for row in rows(given.models, names, given.chips.split(",")):
        found.append(row)
        exact = "yes" if row.matches else "NO"
        cells = f"{row.cycles / 1e6:.3f}", f"{row.ram_bytes:,}", exact
        table.add_row(row.model, row.chip, row.way, *cells)
    Console(width=120).print(table)
    write_results(given.json, found)
    return 0 if found and all(row.matches for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
