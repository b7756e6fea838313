"""The path of an Edge TPU pipeline: model files -> plan -> stages -> compiled -> results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from toolchain.edgetpu.model.figures import operator_weights_ms
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.model.rules import broken_rules
from toolchain.edgetpu.plan.planner import PipelinePlan
from toolchain.edgetpu.run import backends, compiler, coral
from toolchain.edgetpu.run.folder import PipelineFolder, written_folder
from toolchain.edgetpu.run.runner import Pipeline, RunTimes, Tensors
from toolchain.edgetpu.run.simulate import Load, Simulation, simulate
from toolchain.edgetpu.run.split import split_file
from toolchain.errors import InputError
from toolchain.files.arrays import read_array
from toolchain.frontends import read_model_file
from toolchain.ops.spec import Array

Input = tuple[str, tuple[int, ...], Any]
"""Name, shape and NumPy type of an input."""


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
) -> PipelineFolder:
    """Write the stages of every model of a plan, and `pipeline.json`.

    `finish` may add files before the folder, which until then is beside `out`, takes its place.
    `force` is as in `replaced_folder`. Raises InputError for a summary, which has no model, for a
    plan that cannot run, and for a folder that may not or cannot be written.
    """
    segments = []
    for path, graph, stage_of in zip(paths, plan.graphs, plan.stage_of, strict=True):
        broken = broken_rules(graph, stage_of, plan.stages)
        if plan.stages > 1 and broken:
            raise InputError(
                f"{graph.name}: this plan cannot run: {broken[0]}; use another --objective"
            )
        data = read_model_file(path)
        if data[4:8] != b"TFL3":
            raise InputError(f"{path} is a summary of a graph; only a .tflite file can be split")
        segments.append(split_file(data, graph, stage_of, plan.stages))
    weights = [_weights(plan, graph) for graph in plan.graphs]
    with written_folder(out, plan, segments, weights, force=force, inputs=paths) as fresh:
        finish(fresh)
    return replace(fresh, path=out)


def _weights(plan: PipelinePlan, graph: PipelineGraph) -> tuple[float, ...]:
    if plan.options.times_ms is not None:
        return plan.options.times_ms
    return operator_weights_ms(graph, plan.options.cost)


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
    loads = []
    for stage in range(folder.stages):
        parts = [model.stages[stage] for model in folder.models]
        streamed = sum(part.streamed_bytes for part in parts)
        fixed = sum(part.time_ms for part in parts) - streamed / folder.cost.stream_bytes_per_ms
        feeds = {
            later
            for model in folder.models
            for later in range(stage + 1, folder.stages)
            if set(model.stages[stage].outputs) & set(model.stages[later].inputs)
        }
        loads.append(Load(fixed, streamed, tuple(sorted(feeds))))
    return simulate(loads, folder.cost, frames, capacity, arrival_ms)


@dataclass
class Runner:
    """An open pipeline. Thimble's own measures `times`; Google's runner reports none."""

    backend: backends.Choice
    _pipeline: Any
    _own: Pipeline | None
    _board: backends.BoardStage | None = None

    def close(self) -> None:
        """Close the line to a microcontroller; an emulated one ends."""
        if self._board is not None:
            self._board.close()

    def run(self, frames: Iterable[Tensors]) -> Iterator[tuple[Array, ...]]:
        """Results in the order of the frames; close the iterator to stop."""
        results: Iterator[tuple[Array, ...]] = self._pipeline.run(frames)
        return results

    @property
    def times(self) -> RunTimes | None:
        return None if self._own is None else self._own.times


def open_runner(
    folder: PipelineFolder,
    backend: str = "auto",
    devices: str | None = None,
    capacity: int = 1,
    fast: bool = False,
    port: str | None = None,
) -> Runner:
    """Load every stage on the best available backend, or the requested one.

    `port`: the line to a microcontroller, as in `open_board`.
    """
    sticks = backends.devices_of(devices, folder)
    choice = backends.choose(folder, backend, sticks)
    if choice.name == "pycoral":
        return Runner(choice, coral.PycoralPipeline(folder, sticks), None)
    stages = backends.open_stages(folder, choice, sticks, fast, port)
    patience_s = coral.SILENCE_S if choice.name == "delegate" else None
    own = Pipeline(stages, backends.output_names(folder), capacity, patience_s)
    boards = (stage for stage in stages if isinstance(stage, backends.BoardStage))
    return Runner(choice, own, own, next(boards, None))


def frames_of(
    folder: PipelineFolder, paths: Sequence[Path], count: int, seed: int = 0
) -> tuple[Iterator[Tensors], int]:
    """Frames, and their number.

    `paths`: .npy or .npz files, one per model input in order; an array with one more dimension
    holds one frame in each row. Without files, `count` frames of random numbers. Raises InputError
    if a file does not fit the model.
    """
    return frames_for(backends.input_details(folder), paths, count, seed)


def frames_for(
    details: Sequence[Input], paths: Sequence[Path], count: int, seed: int = 0
) -> tuple[Iterator[Tensors], int]:
    """As `frames_of`, for inputs with these names, shapes and types."""
    if not paths:
        return _random(details, count, seed), count
    if len(paths) != len(details):
        names = ", ".join(name for name, _, _ in details)
        raise InputError(f"{len(paths)} input files for {len(details)} inputs ({names})")
    columns = {
        name: _column(path, name, shape, dtype)
        for path, (name, shape, dtype) in zip(paths, details, strict=True)
    }
    sizes = {len(column) for column in columns.values()}
    if len(sizes) != 1:
        raise InputError("the input files hold different numbers of frames")
    rows = sizes.pop()
    total = max(count, rows) if rows == 1 else rows
    return (
        {name: column[frame % rows] for name, column in columns.items()} for frame in range(total)
    ), total


def _random(details: Sequence[Input], count: int, seed: int) -> Iterator[Tensors]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        frame = {}
        for name, shape, dtype in details:
            kind: np.dtype[Any] = np.dtype(dtype)
            if kind.kind in "iu":
                bounds = np.iinfo(kind)
                frame[name] = rng.integers(bounds.min, bounds.max, shape, kind, endpoint=True)
            else:
                frame[name] = rng.standard_normal(shape).astype(kind)
        yield frame


def _column(path: Path, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Frames of one input: (frames, *shape)."""
    array = read_array(path, partial(_check_frames, path=path, name=name, shape=shape))
    if array.dtype != np.dtype(dtype):
        raise InputError(f"{path} holds {array.dtype}, input {name!r} is {np.dtype(dtype)}")
    return array.reshape(-1, *shape)


def _check_frames(found: tuple[int, ...], path: Path, name: str, shape: tuple[int, ...]) -> None:
    """Raises InputError for an array that holds no frames: one, several, or along their axis 0."""
    several = found[1:] == shape and len(found) == len(shape) + 1 and found[0] > 0
    along = len(found) == len(shape) and shape[:1] == (1,) and (1, *found[1:]) == shape
    if found != shape and not several and not (along and found[0] > 0):
        raise InputError(
            f"{path} has shape {list(found)}, input {name!r} needs {list(shape)} a frame"
        )


def run_all(runner: Runner, frames: Iterable[Tensors]) -> Iterator[tuple[Array, ...]]:
    """All results. The pipeline is stopped however the loop over them ends."""
    with closing(runner.run(frames)) as results:  # type: ignore[type-var]
        yield from results
