"""`--mcu`: a microcontroller as a stage of a pipeline: weighed before it is planned, then built."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from math import inf
from pathlib import Path

from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cli._edgetpu_options import PipelineOptions
from toolchain.deployment.compile import Compiled, compile_model
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.pipeline import read_graphs
from toolchain.edgetpu.plan.beside import Mcu
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import PipelinePlan, plan_with_mcu
from toolchain.edgetpu.run.folder import FIRMWARE, PipelineFolder
from toolchain.edgetpu.run.split import split_file
from toolchain.errors import InputError
from toolchain.frontends import read_model_file
from toolchain.progress import Report
from toolchain.sweep.candidates import evaluate

_UNITS_BYTES = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "baud": 0.1}
_SPEED = re.compile(r"(\d+(?:\.\d+)?)\s*([kM]?B/s|baud)")


def bytes_per_ms(text: str) -> float:
    """Bytes per millisecond of a speed with its unit. Raises InputError for a text that is none."""
    match = _SPEED.fullmatch(text.strip())
    speed = float(match[1]) * _UNITS_BYTES[match[2]] if match else 0.0
    if speed <= 0:
        units = ", ".join(_UNITS_BYTES)
        raise InputError(f"--link {text}: a speed above 0 with its unit ({units}), as 1MB/s")
    return speed / 1e3


def planned(
    models: Sequence[Path], asked: PipelineOptions, board: str, options: Options, step: Report
) -> PipelinePlan:
    """The plan of one model with a microcontroller. Raises InputError for what cannot be."""
    if len(models) != 1 or options.same_stage_children:
        raise InputError("--mcu: one model, without --same-stage-children")
    if not asked.stages.isdigit():
        raise InputError(f"--stages {asked.stages}: with --mcu a number of sticks, or 0")
    target = find_board(board)
    if target.is_host or (asked.link is None and target.uart is None):
        raise InputError(f"--mcu {board}: it has no serial line; take a board with a UART")
    step("reading")
    (graph,) = read_graphs(models)
    baud = target.uart.baud if target.uart else 0
    speed = bytes_per_ms(asked.link if asked.link is not None else f"{baud}baud")
    step("weighing stages")
    weigher = _Weigher(models[0], graph, target)
    mcu = Mcu(target.name, speed, weigher.weigh, asked.mcu_stage)
    return plan_with_mcu(graph, int(asked.stages), options, mcu)


class _Weigher:
    """Estimates stages of one model on a board."""

    def __init__(self, path: Path, graph: PipelineGraph, target: Board) -> None:
        self._data = read_model_file(path)
        if self._data[4:8] != b"TFL3":
            raise InputError(f"--mcu: {path} is a summary of a graph; only a .tflite file has code")
        self._graph, self._target = graph, target

    def weigh(self, operators: tuple[int, ...]) -> float:
        """Milliseconds of an inference; infinite where it does not fit or has no kernels."""
        inside, count = set(operators), len(self._graph.ops)
        at_start = 0 in inside
        data = self._data
        if len(inside) < count:
            stage_of = tuple(int((index in inside) != at_start) for index in range(count))
            data = split_file(data, self._graph, stage_of, 2)[0 if at_start else 1].data
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stage.tflite"
            path.write_bytes(data)
            try:
                estimate = evaluate(path, self._target.name)
            except InputError:
                return inf
        fits = (
            estimate.ram_bytes <= self._target.ram_bytes
            and estimate.flash_bytes <= self._target.flash_bytes
        )
        return 1e3 * estimate.cycles / self._target.clock_hz if fits else inf


def write_firmware(folder: PipelineFolder, step: Report) -> Compiled | None:
    """The firmware of the stage on a microcontroller, beside the stages; None without one.

    Raises DoesNotFitError, InputError and MissingToolError as `compile_model` does.
    """
    if folder.mcu is None:
        return None
    stage = folder.models[0].stages[folder.mcu]
    step("building firmware")
    return compile_model(folder.path / stage.file, stage.board, folder.path / FIRMWARE, report=step)
