"""The path of an Edge TPU pipeline: model files -> plan -> stages -> compiled -> results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolchain.device.patience import RUN_SECONDS
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.model.rules import broken_rules
from toolchain.edgetpu.plan.devices import Setting, Visit
from toolchain.edgetpu.plan.planner import PipelinePlan
from toolchain.edgetpu.plan.rates import RatePlan
from toolchain.edgetpu.run import backends, compiler, coral
from toolchain.edgetpu.run.folder import (
    PipelineFolder,
    RateFolder,
    write_rate_folder,
    written_folder,
)
from toolchain.edgetpu.run.frames import frames_of
from toolchain.edgetpu.run.runner import DeviceRunner, Pipeline, RunTimes, Tensors
from toolchain.edgetpu.run.simulate import Simulation, simulate
from toolchain.edgetpu.run.split import Segment, split_file
from toolchain.errors import InputError
from toolchain.frontends import read_model_file
from toolchain.ops.spec import Array

__all__ = [
    "Runner",
    "compile_folder",
    "frames_of",
    "open_rate_runner",
    "open_runner",
    "read_graphs",
    "simulate_folder",
    "split",
    "split_rates",
]


def read_graphs(paths: Sequence[Path]) -> tuple[PipelineGraph, ...]:
    """The graphs of model files. Raises InputError for the first file that cannot be planned."""
    return tuple(read_graph(path) for path in paths)


def split(
    paths: Sequence[Path],
    plan: PipelinePlan,
    out: Path,
    *,
    force: bool = False,
    finish: Callable[[PipelineFolder], None] = lambda folder: None,
    tell: Callable[[str], None] = lambda line: None,
) -> PipelineFolder:
    """Write the stages of every model of a plan, and `pipeline.json`.

    `finish` may add files before the folder, which until then is beside `out`, takes its place.
    `tell` gets a line for each operator that edgetpu_compiler is known to reject. `force` is as in
    `replaced_folder`. Raises InputError for a summary, which has no model, for a plan that cannot
    run, and for a folder that may not or cannot be written.
    """
    segments = _segments(paths, plan, "; use another --objective")
    with written_folder(out, plan, segments, force=force, inputs=paths) as fresh:
        for model, parts in zip(fresh.models, segments, strict=True):
            for stage, part in zip(model.stages, parts, strict=True):
                for why in part.rejected if stage.on_stick else ():
                    tell(f"{stage.file}: {why}")
        finish(fresh)
    return replace(fresh, path=out)


def split_rates(
    paths: Sequence[Path], plan: RatePlan, fields: dict[str, Any], out: Path, *, force: bool = False
) -> tuple[str, ...]:
    """Write the stages of every model of a plan for rates, and `rates.json`. Returns the files.

    `fields` is the plan's JSON; `force` and the errors raised are as in `split`.
    """
    segments = _segments(paths, plan)
    return write_rate_folder(out, plan, segments, fields, force=force, inputs=paths)


def _segments(
    paths: Sequence[Path], plan: PipelinePlan | RatePlan, remedy: str = ""
) -> list[tuple[Segment, ...]]:
    """The stages of every model as files."""
    segments = []
    for path, graph, stage_of, figures in zip(
        paths, plan.graphs, plan.stage_of, plan.figures, strict=True
    ):
        stages = len(figures)
        broken = broken_rules(graph, stage_of, stages)
        if stages > 1 and broken:
            raise InputError(f"{graph.name}: this plan cannot run: {broken[0]}{remedy}")
        data = read_model_file(path)
        if data[4:8] != b"TFL3":
            raise InputError(f"{path} is a summary of a graph; only a .tflite file can be split")
        segments.append(split_file(data, graph, stage_of, stages))
    return segments


def compile_folder(folder: PipelineFolder) -> list[tuple[compiler.CompilerReport, ...]]:
    """Reports of edgetpu_compiler, by stage and model. Raises MissingToolError without it."""
    return [
        compiler.compile_stages(folder, [model.stages[stage] for model in folder.models])
        for stage in range(folder.stages)
        if folder.models[0].stages[stage].on_stick
    ]


def simulate_folder(
    folder: PipelineFolder, frames: int, capacity: int = 1, arrival_ms: float = 0.0
) -> Simulation:
    """Simulate the pipeline of a folder with the cost model that it was planned with."""
    setting, stages = Setting(folder.stages, folder.cost), []
    for stage in range(folder.stages):
        parts = [model.stages[stage] for model in folder.models]
        streamed = sum(part.streamed_bytes for part in parts)
        fixed = folder.cost.fixed_ms(sum(part.time_ms for part in parts), streamed)
        feeds = {
            later
            for model in folder.models
            for later in range(stage + 1, folder.stages)
            if set(model.stages[stage].outputs) & set(model.stages[later].inputs)
        }
        stream_ms = setting.stream_ms(streamed)
        stages.append(Visit(stage, fixed, stream_ms, feeds=tuple(sorted(feeds))))
    return simulate(stages, setting.bus, frames, capacity, arrival_ms)


@dataclass
class Runner:
    """An open pipeline. Thimble's own measures `times`; Google's runner reports none."""

    backend: backends.Choice
    _pipeline: Pipeline | coral.PycoralPipeline
    _board: backends.BoardStage | None = None

    def close(self) -> None:
        """Close the line to a microcontroller; an emulated one ends."""
        if self._board is not None:
            self._board.close()

    def run(self, frames: Iterable[Tensors]) -> Iterator[tuple[Array, ...]]:
        """Results in the order of the frames; close the iterator to stop."""
        return self._pipeline.run(frames)

    @property
    def times(self) -> RunTimes | None:
        return self._pipeline.times


def open_runner(
    folder: PipelineFolder,
    backend: str = "auto",
    devices: str | None = None,
    capacity: int = 1,
    fast: bool = False,
    port: str | None = None,
    limit_seconds: float = RUN_SECONDS,
) -> Runner:
    """Load every stage on the best available backend, or the requested one.

    `port`: the line to a microcontroller, as in `open_board`. `limit_seconds`: of a frame in a
    stage that is on no stick.
    """
    sticks = backends.devices_of(devices, folder)
    choice = backends.choose(folder, backend, sticks)
    if choice.name == "pycoral":
        return Runner(choice, coral.PycoralPipeline(folder, sticks))
    stages = backends.open_stages(folder, choice, sticks, fast, port, limit_seconds)
    boards = (stage for stage in stages if isinstance(stage, backends.BoardStage))
    own = Pipeline(stages, backends.output_names(folder), capacity)
    return Runner(choice, own, next(boards, None))


def open_rate_runner(
    folder: RateFolder, fast: bool = False, limit_seconds: float = RUN_SECONDS
) -> DeviceRunner:
    """Load every stage on the processor; `fast`: with LiteRT's optimised kernels.

    `limit_seconds`: of a request in a stage.
    """
    stages = [
        [
            backends.LiteRTStage(
                [(model, folder.path / stage.file)],
                number,
                (),
                stage.file,
                fast,
                limit_seconds=limit_seconds,
            )
            for number, stage in enumerate(model.stages)
        ]
        for model in folder.models
    ]
    devices = [[visit.device for visit in path] for path in folder.plan.paths]
    return DeviceRunner(stages, devices, [model.outputs for model in folder.models])
