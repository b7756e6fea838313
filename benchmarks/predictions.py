"""Predicted cycles of whole networks beside traced ones, on every core that has coefficients.

    python -m benchmarks.predictions [MODEL ...] [--models DIR] [--boards BOARD,..] [--json FILE]

Each model is compiled for each emulated board with its operators whole, and run there twice; the
second run is read as each core that the board's code is for (`benchmarks.cost.FITTED`), with
memories that never wait, and as some chips at their highest clocks. No network takes part in the
fit. A cell has three errors of the prediction, predicted / traced - 1: that of the total; the mean
over all operators, without signs; the largest of an operator that takes 2% of the total or more.
What fits no emulated board, or not the chip's flash, is left out. A column ends with the mean
without signs, the mean of the means, the largest of all, and how many operators are off by more
than 10%. MODEL: part of a file's name.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks._results import json_option, write_results
from benchmarks.cost import FITTED
from toolchain.boards import Board, Target, as_target
from toolchain.boards import board as find_board
from toolchain.codegen import generate
from toolchain.cost.predicted import predicted_model
from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.memory_system import MemorySystem
from toolchain.cycles.trace import Trace
from toolchain.deployment.modelled_time import ModelledRun, Reader, find_reader
from toolchain.device.build import BuildOptions, build
from toolchain.device.firmware import Firmware
from toolchain.device.session import open_board
from toolchain.errors import DoesNotFitError, MissingToolError, ThimbleError
from toolchain.ir import Sources
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import predict_latency

SMALLEST = ("micro_speech --models {shared}/models --boards mps2-an386",)
SHARED_MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
MODELS = (
    "mlperf_tiny_ad_fcae_int8",
    "mlperf_tiny_ic_resnet8_int8",
    "mlperf_tiny_kws_dscnn_int8",
    "mlperf_tiny_sww_1dcnn_int8",
    "mlperf_tiny_vww_mbv1_025_96_int8",
    "st_yamnet_256_64x96_esc10_int8",
    "st_miniresnet_1stack_64x50_int8",
    "openmv_fomo_face_detection",
    "openmv_blazeface_front_128",
    "nxp_yolo_face_detect",
    "tinyengine_mcunet_vww_int8",
    "tflm_person_detect_int8",
    "tflm_micro_speech_int8",
    "tflm_mnist_lstm_int8",
    "esphome_v2_alexa",
    "coral_mobilenet_v1_0.25_128_quant",
)
CHIPS: Mapping[str, tuple[str, ...]] = {
    "mps2-an386": ("nucleo-l4r5zi",),
    "mps2-an505": ("stm32u575",),
    "mps2-an500": ("nucleo-h743zi",),
}
LARGE, MOST = 0.02, 0.1
"""The share of the total from which on an operator is looked at alone, and its largest error."""


@dataclass(frozen=True)
class Errors:
    """A model on a core or chip. `large`: of each operator that takes `LARGE` of the traced total,
    by name.
    """

    model: str
    column: str
    cycles: int
    total: float
    mean: float
    large: Mapping[str, float]

    @property
    def worst(self) -> float:
        """The largest of an operator that takes so much."""
        return max(self.large.values(), key=abs, default=0.0)


def targets(board: Board) -> Iterator[Target]:
    """The columns of an emulated board: each of its cores in its own memories, and chips."""
    own = as_target(board.name)
    for core in FITTED[board.name].cores:
        yield replace(own, name=core, core=replace(own.core, name=core))
    yield from map(as_target, CHIPS.get(board.name, ()))


def compiled(model: Path, board: Board, folder: Path) -> tuple[Plan, Sources, Firmware]:
    """Raises ThimbleError as compiling does."""
    plan = plan_model(model, board.name, PlanOptions().unsplit)
    root = cmsis_nn.find()
    sources = generate(plan, board.core, root)
    firmware = build([(plan, sources)], board, folder, BuildOptions(), cmsis_nn_folder=root)
    return plan, sources, firmware


def traced(firmware: Firmware, memory: MemorySystem) -> Trace:
    """The second of two runs: the first finds the caches empty."""
    with open_board(firmware, trace=memory) as session:
        session.run_pattern(1)
        session.run_pattern(1)
        return session.trace().run(-1)


def runs(firmware: Firmware, board: Board) -> Iterator[tuple[Target, ModelledRun]]:
    """One inference as each target of the board would run it."""
    known: dict[MemorySystem, Trace] = {}
    for target in targets(board):
        core = target.core.name
        reader = find_reader(firmware, read_as="" if target.name == core else target.name)
        timing = timing_of(core)
        if not isinstance(reader, Reader) or timing is None:
            raise MissingToolError(f"{board.name}: nothing can be traced on this machine")
        if reader.memory not in known:
            known[reader.memory] = traced(firmware, reader.memory)
        (run,) = replace(reader, timing=timing).read(known[reader.memory]).runs
        yield target, run


def errors(plan: Plan, sources: Sources, target: Target, run: ModelledRun) -> Errors:
    """Of the prediction for a target."""
    counts = predict_latency(plan, predicted_model(target)).counts
    predicted = [sum(counts[i] for i in op.numbers) for op in sources.operators]
    each = [p / c - 1 if c else 0.0 for p, c in zip(predicted, run.operators, strict=True)]
    large = {
        op.name: error
        for op, error, cycles in zip(sources.operators, each, run.operators, strict=True)
        if cycles >= LARGE * run.total
    }
    total, mean = sum(counts) / run.total - 1, float(np.abs(each).mean())
    return Errors(plan.graph.name, target.name, run.total, total, mean, large)


def measured(models: Sequence[Path], boards: Sequence[Board], log: Console) -> Iterator[Errors]:
    for board in boards:
        for model in models:
            with (
                log.status(f"{model.stem} on {board.name}"),
                tempfile.TemporaryDirectory() as scratch,
            ):
                try:
                    plan, sources, firmware = compiled(model, board, Path(scratch))
                except DoesNotFitError:
                    continue
                for target, run in runs(firmware, board):
                    yield errors(plan, sources, target, run)


def markdown(found: Sequence[Errors]) -> str:
    """A row for each model, a column for each core and chip."""
    columns = list(dict.fromkeys(one.column for one in found))
    cells = {(one.model, one.column): one for one in found}
    lines = [["model", *columns], ["---", *["---"] * len(columns)]]
    for model in dict.fromkeys(one.model for one in found):
        row = [cells.get((model, column)) for column in columns]
        texts = (f"{o.total:+.1%} {o.mean:.1%} {o.worst:+.0%}" if o else "-" for o in row)
        lines.append([model, *texts])
    lines.append(["all", *(_of_all([o for o in found if o.column == c]) for c in columns)])
    lines.append(["above 10%", *(_above([o for o in found if o.column == c]) for c in columns)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _of_all(found: Sequence[Errors]) -> str:
    total, mean = np.abs([(one.total, one.mean) for one in found]).mean(axis=0)
    return f"{total:.1%} {mean:.1%} {max((one.worst for one in found), key=abs):+.0%}"


def _above(found: Sequence[Errors]) -> str:
    large = [error for one in found for error in one.large.values()]
    return f"{sum(abs(error) > MOST for error in large)} of {len(large)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help="models with this in their names")
    parser.add_argument("--models", type=Path, default=SHARED_MODELS, help="folder of .tflite")
    parser.add_argument("--boards", default=",".join(FITTED), help="in QEMU, by comma")
    json_option(parser)
    options = parser.parse_args()
    models = [
        options.models / f"{name}.tflite"
        for name in MODELS
        if not options.names or any(part in name for part in options.names)
    ]
    console, log = Console(width=240, soft_wrap=True), Console(stderr=True)
    try:
        boards = [find_board(name) for name in options.boards.split(",")]
        found = list(measured(models, boards, log))
    except ThimbleError as error:
        log.print(f"error: {error}", markup=False)
        return 2
    console.print(markdown(found), markup=False, highlight=False)
    for one in found:
        wrong = {name: error for name, error in one.large.items() if abs(error) > MOST}
        if wrong:
            text = ", ".join(f"{name} {error:+.0%}" for name, error in wrong.items())
            console.print(f"{one.model}, {one.column}: {text}", markup=False, highlight=False)
    write_results(options.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
