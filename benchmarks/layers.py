"""Cycles a product of each layer of a model, beside what its loops could reach.

    .venv/bin/python -m benchmarks.layers MODEL [--board BOARD] [--as BOARD|CHIP] [--least SHARE]
                                          [--json FILE]

The model runs on the emulated board twice, with our choice of kernels and with `--kernels
cmsis-nn`, and what ran is read as the chip (docs/time.md). A layer's products are those of its
plain convolution, so Winograd's form can take less than half a cycle for one. The bound is what
the multiplications and loads that our kernel executed take if nothing else were between them
(`toolchain/cycles/issue_bound.py`): what is above it goes into unpacking, scaling, loops and waits
for memory.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from toolchain import compile_model
from toolchain.cycles.issue_bound import issue_bound
from toolchain.deployment.profile import Profile
from toolchain.deployment.profiling import profile_folder
from toolchain.errors import InputError, ThimbleError
from toolchain.ops.preference import Preference
from toolchain.planning.options import PlanOptions

SMALLEST = (
    "{shared}/models/mlperf_tiny_ad_fcae_int8.tflite --board mps2-an386 --as stm32l4r5 --least 5",
)


@dataclass(frozen=True)
class Layer:
    """An operator: its products, cycles, and the least cycles of what its kernel multiplies and
    loads. `theirs`: cycles with CMSIS-NN's kernels; None where the plans differ.
    """

    name: str
    kind: str
    macs: int
    cycles: int
    bound: int
    theirs: int | None


def layers(model: Path, board: str, read_as: str) -> list[Layer]:
    """The operators of a model in running order. Raises ThimbleError as compiling does, and
    InputError where the board gives no cycles.
    """
    with tempfile.TemporaryDirectory() as scratch:
        ours, theirs = (
            _profile(model, board, read_as, Path(scratch) / kernels.value, kernels)
            for kernels in (Preference.AUTO, Preference.CMSIS_NN)
        )
    if ours.reading is None or theirs.reading is None:
        raise InputError(f"{board}: no cycles: {ours.no_cycles or 'name an emulated board'}")
    arm = {part.name: part.count for part in theirs.operators}
    found = []
    for number, part in enumerate(ours.operators):
        lines = ours.reading.operator(number).lines.values()
        bound = issue_bound(lines, ours.reading.core)
        found.append(Layer(part.name, part.kind, part.macs, part.count, bound, arm.get(part.name)))
    return found


def _profile(model: Path, board: str, read_as: str, folder: Path, kernels: Preference) -> Profile:
    compile_model(model, board, folder, PlanOptions(kernels=kernels))
    return profile_folder(folder, runs=2, read_as=read_as)


def table(found: Sequence[Layer], title: str, least: float) -> Table:
    """Layers that take at least the share `least` of all cycles, and the whole."""
    whole = sum(layer.cycles for layer in found)
    shown = Table("operator", "kind", title=title)
    for heading in ("products", "cycles", "share", "a product", "bound", "CMSIS-NN", "ratio"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for layer in found:
        if layer.cycles < least * whole:
            continue
        theirs = layer.theirs
        shown.add_row(
            layer.name,
            layer.kind,
            f"{layer.macs:,}" if layer.macs else "-",
            f"{layer.cycles:,}",
            f"{layer.cycles / whole:.1%}",
            f"{layer.cycles / layer.macs:.2f}" if layer.macs else "-",
            f"{layer.bound / layer.macs:.2f}" if layer.macs else "-",
            f"{theirs / layer.macs:.2f}" if theirs and layer.macs else "-",
            f"{layer.cycles / theirs:.2f}" if theirs else "-",
        )
    arm = [layer.theirs for layer in found]
    macs = sum(layer.macs for layer in found)
    shown.add_section()
    shown.add_row(
        "all",
        "",
        f"{macs:,}",
        f"{whole:,}",
        "",
        f"{whole / macs:.2f}" if macs else "-",
        f"{sum(layer.bound for layer in found) / macs:.2f}" if macs else "-",
        f"{sum(filter(None, arm)) / macs:.2f}" if macs and all(arm) else "-",
        f"{whole / sum(filter(None, arm)):.2f}" if all(arm) else "-",
    )
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--board", default="mps2-an386", help="an emulated board")
    parser.add_argument("--as", dest="chip", default="", help="the board or chip to read it as")
    parser.add_argument(
        "--least", type=float, default=1.0, help="leave out what takes less than so many percent"
    )
    json_option(parser)
    wanted = parser.parse_args()
    try:
        found = layers(wanted.model, wanted.board, wanted.chip)
    except ThimbleError as error:
        sys.exit(f"error: {error}")
    title = f"{wanted.model.stem}, cycles as {wanted.chip or wanted.board}"
    Console(width=160).print(table(found, title, wanted.least / 100))
    write_results(wanted.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
