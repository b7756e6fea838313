"""Published silicon beside what the model of time says of a trace: MLPerf Tiny, single kernels.

    python -m benchmarks.silicon [--models DIR] [--only TEXT] [--target NAME] [--cmsis-nn DIR]
                                 [--json FILE]

`silicon_published.json` holds the published cycles in millions (milliseconds x MHz), with the
software, its kernels, and how it was built where its sources say so; a model there is a file, or
the shape of one operator (`toolchain.timing.kernel_shapes`). What has CMSIS-NN's kernels is set
beside `--kernels cmsis-nn --keep-dead-channels`, all else beside our own choice. Each model is
compiled with the same optimisation for the emulated board that the row names and run twice
there; the second run is read as the target. The columns are cycles of the core, waits for
instructions, waits for data, their sum, the published sum, and model / published: below 1, the
model says less than was measured. docs/time.md says what is known of the published programs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from toolchain.boards import board as find_board
from toolchain.codegen import generate
from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.memory_system import MemorySystem
from toolchain.cycles.reading import Cycles
from toolchain.cycles.trace import Trace
from toolchain.deployment.modelled_time import Reader, find_reader
from toolchain.device.build import BuildOptions, build
from toolchain.device.firmware import Firmware
from toolchain.device.session import open_board
from toolchain.errors import InputError, MissingToolError, ThimbleError
from toolchain.kernels import cmsis_nn
from toolchain.ops.preference import Preference
from toolchain.planner import plan_graph, plan_model
from toolchain.planning.options import PlanOptions
from toolchain.timing.kernel_shapes import graph_of_shape

SMALLEST = ("--models {shared}/models --only AD --target nucleo-l4r5zi",)
PUBLISHED = Path(__file__).with_name("silicon_published.json")
SHARED_MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
MILLION = 1e6
Model: TypeAlias = Path | Mapping[str, Any]
"""A file, or the shape of one operator."""


@dataclass(frozen=True)
class Published:
    """One software on one chip. `cycles`: millions, by the model's short name.

    `ran_on`: the emulated board for it. `core`: if set, whose timing is taken instead of that of
    the target. `prefetch`: false where the software leaves the flash's prefetch off.
    """

    target: str
    ran_on: str
    software: str
    kernels: Preference
    source: str
    cycles: Mapping[str, float]
    optimisation: str = "-O2"
    core: str = ""
    prefetch: bool = True


@dataclass(frozen=True)
class Row:
    """A model on a target, in millions. `ratio`: total / published."""

    model: str
    target: str
    software: str
    kernels: str
    optimisation: str
    instructions: float
    core: float
    fetch: float
    data: float
    total: float
    published: float
    ratio: float


class Traced:
    """A firmware and the traces of its second run, one for each memory system."""

    def __init__(self, firmware: Firmware) -> None:
        self.firmware = firmware
        self._traces: dict[MemorySystem, Trace] = {}

    def trace(self, memory: MemorySystem) -> Trace:
        """The first run warms the caches, as the published loops of inferences do."""
        if memory not in self._traces:
            with open_board(self.firmware, trace=memory) as session:
                session.run_pattern(1)
                session.run_pattern(1)
                self._traces[memory] = session.trace().run(-1)
        return self._traces[memory]


def compiled(
    model: Model, published: Published, folder: Path, kernels_folder: Path | None
) -> Traced:
    """Firmware of a model with the kernels and the optimisation of a published row."""
    target = find_board(published.ran_on)
    ours = published.kernels is Preference.AUTO
    options = PlanOptions(kernels=published.kernels, dead_channels=ours).unsplit
    if isinstance(model, Path):
        plan = plan_model(model, target.name, options)
    else:
        plan = plan_graph(graph_of_shape(model), target, options)
    found = cmsis_nn.find(kernels_folder)
    sources = generate(plan, target.core, found)
    how = BuildOptions(kernel_optimisation=published.optimisation)
    return Traced(build([(plan, sources)], target, folder, how, cmsis_nn_folder=found))


def cycles_of(traced: Traced, published: Published) -> tuple[Cycles, int]:
    """Cycles of one inference as the row's target runs it, and its instructions."""
    reader = find_reader(traced.firmware, read_as=published.target)
    if not isinstance(reader, Reader):
        raise MissingToolError(f"{published.target}: {reader.reason}")
    trace = traced.trace(reader.memory)
    if published.core:
        timing = timing_of(published.core)
        if timing is None:
            raise InputError(f"there is no timing model of the {published.core}")
        reader = replace(reader, timing=timing)
    if not published.prefetch:
        reader = replace(reader, memory=without_prefetch(reader.memory))
    reading = reader.read(trace).reading
    return reading.cycles, reading.instructions


def without_prefetch(memory: MemorySystem) -> MemorySystem:
    """The same memories, none of which fetches ahead."""
    regions = (replace(r, timing=replace(r.timing, prefetch=False)) for r in memory.regions)
    return replace(memory, regions=tuple(regions))


def read_published(file: Path) -> tuple[Mapping[str, Any], tuple[Published, ...]]:
    """The models by short name, each the name of a file or the shape of one operator; all rows."""
    data = json.loads(file.read_text(encoding="utf-8"))
    rows = (Published(**{**row, "kernels": Preference(row["kernels"])}) for row in data["rows"])
    return data["models"], tuple(rows)


def table(rows: list[Row]) -> Table:
    """Every row, and below each software the geometric mean of its ratios."""
    shown = Table("chip", "software", "model", title="millions of cycles an inference")
    for heading in ("instructions", "core", "fetch", "data", "total", "published", "ratio"):
        shown.add_column(heading, justify="right")
    for i, row in enumerate(rows):
        cells = (row.instructions, row.core, row.fetch, row.data, row.total, row.published)
        figures = (f"{cell:.3f}" for cell in cells)
        shown.add_row(row.target, row.software, row.model, *figures, f"{row.ratio:.3f}")
        kin = [r for r in rows if (r.target, r.software) == (row.target, row.software)]
        if row is kin[-1]:
            mean = geometric_mean(r.ratio for r in kin)
            shown.add_row("", "", "mean", *[""] * 6, f"{mean:.3f}", end_section=i + 1 < len(rows))
    return shown


def readings(
    published: Iterable[Published], files: Mapping[str, Model], kernels_folder: Path | None
) -> Iterator[Row]:
    """A row for each published figure whose model is in `files`."""
    made: dict[tuple[str, str, Preference, str], Traced] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for row in published:
            for model in [name for name in row.cycles if name in files]:
                key = (model, row.ran_on, row.kernels, row.optimisation)
                if key not in made:
                    folder = Path(scratch) / str(len(made))
                    made[key] = compiled(files[model], row, folder, kernels_folder)
                yield reading(made[key], row, model)


def reading(traced: Traced, published: Published, model: str) -> Row:
    """One figure beside its published one."""
    cycles, instructions = cycles_of(traced, published)
    return Row(
        model=model,
        target=published.target,
        software=published.software,
        kernels=published.kernels.value,
        optimisation=published.optimisation,
        instructions=instructions / MILLION,
        core=cycles.core / MILLION,
        fetch=cycles.fetch / MILLION,
        data=cycles.data / MILLION,
        total=cycles.total / MILLION,
        published=published.cycles[model],
        ratio=cycles.total / MILLION / published.cycles[model],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=Path, default=SHARED_MODELS, help="folder of .tflite")
    parser.add_argument("--only", default="", help="models whose short name contains this text")
    parser.add_argument("--target", default="", help="chips and boards whose name contains this")
    parser.add_argument("--cmsis-nn", type=Path, help="the folder of another release")
    json_option(parser)
    chosen = parser.parse_args()
    console = Console(width=140)
    names, published = read_published(PUBLISHED)
    files = {
        name: chosen.models / f"{model}.tflite" if isinstance(model, str) else model
        for name, model in names.items()
        if chosen.only in name
    }
    rows = []
    try:
        wanted = [row for row in published if chosen.target in row.target]
        for row in readings(wanted, files, chosen.cmsis_nn):
            console.print(f"{row.target}, {row.software}, {row.model}", style="dim", markup=False)
            rows.append(row)
    except ThimbleError as error:
        sys.exit(f"error: {error}")
    console.print(table(rows))
    write_results(chosen.json, rows)


if __name__ == "__main__":
    main()
