"""The folder of a split pipeline: a TFLite file for each stage, and `pipeline.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolchain.edgetpu.model.cost import EdgeTpuCost
from toolchain.edgetpu.plan.planner import PipelinePlan
from toolchain.edgetpu.run.split import Segment
from toolchain.errors import InputError
from toolchain.files import check_whole, file_stem, free_name, replaced_folder
from toolchain.files.bounded import read_bounded
from toolchain.files.records import read_json, record
from toolchain.frontends.model_file import LARGEST_FILE_BYTES

MANIFEST = "pipeline.json"
FIRMWARE = "mcu"
"""The folder of a microcontroller's firmware."""
FORMAT = "thimble-edgetpu-pipeline"
VERSION = 1
COMPILED_SUFFIX = "_edgetpu.tflite"


@dataclass(frozen=True)
class StageFile:
    """One stage of one model. Names connect it to the other stages; figures are the plan's.

    `on_host`: it runs on the processor beside the sticks, and is not compiled for one. `board`: the
    board whose firmware it is, in the folder `mcu`; empty for all other stages.
    """

    file: str
    sha256: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    operators: tuple[int, ...]
    param_bytes: int
    spill_bytes: int
    streamed_bytes: int
    in_bytes: int
    out_bytes: int
    arithmetic_ms: float
    time_ms: float
    compiled_bytes: int
    on_host: bool = False
    board: str = ""

    @property
    def on_stick(self) -> bool:
        return not self.on_host and not self.board

    @property
    def compiled_file(self) -> str:
        """The name of edgetpu_compiler's output for it."""
        return self.file.removesuffix(".tflite") + COMPILED_SUFFIX


@dataclass(frozen=True)
class ModelStages:
    """One model of a pipeline; `inputs` and `outputs` are its own, in the file's order."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    stages: tuple[StageFile, ...]


@dataclass(frozen=True)
class PipelineFolder:
    """The content of `pipeline.json`. `weights_ms`: arithmetic of each operator of each model."""

    path: Path
    objective: str
    stages: int
    cost: EdgeTpuCost
    models: tuple[ModelStages, ...]
    weights_ms: tuple[tuple[float, ...], ...]
    kinds: tuple[tuple[str, ...], ...]
    period_ms: float

    @property
    def host(self) -> int | None:
        """The stage on the host, if there is one."""
        return next((k for k, stage in enumerate(self.models[0].stages) if stage.on_host), None)

    @property
    def mcu(self) -> int | None:
        """The stage on a microcontroller, if there is one."""
        return next((k for k, stage in enumerate(self.models[0].stages) if stage.board), None)

    @property
    def sticks(self) -> int:
        """How many sticks it needs."""
        return sum(stage.on_stick for stage in self.models[0].stages)


@contextmanager
def written_folder(
    path: Path,
    plan: PipelinePlan,
    segments: Sequence[Sequence[Segment]],
    weights_ms: Sequence[Sequence[float]],
    *,
    force: bool = False,
    inputs: Iterable[Path] = (),
) -> Iterator[PipelineFolder]:
    """A folder with the stages of every model and the manifest, which becomes `path` afterwards.

    What edgetpu_compiler made of the stages of another split never stays beside them. `force`,
    `inputs` and the errors raised are as in `replaced_folder`.
    """
    stems = _stems([graph.name for graph in plan.graphs])
    models = tuple(
        _stages(stem, plan, number, parts, weights_ms[number])
        for number, (stem, parts) in enumerate(zip(stems, segments, strict=True))
    )
    reserved = [s.compiled_file for model in models for s in model.stages if s.on_stick]
    with replaced_folder(path, force=force, inputs=inputs, reserved=reserved) as fresh:
        for model, parts in zip(models, segments, strict=True):
            for stage, segment in zip(model.stages, parts, strict=True):
                (fresh / stage.file).write_bytes(segment.data)
        folder = PipelineFolder(
            fresh,
            plan.options.objective,
            plan.stages,
            plan.options.cost,
            models,
            tuple(tuple(weights) for weights in weights_ms),
            tuple(tuple(op.kind for op in graph.ops) for graph in plan.graphs),
            plan.totals.period_ms,
        )
        text = json.dumps(_manifest(folder), indent=1) + "\n"
        (fresh / MANIFEST).write_text(text, encoding="utf-8")
        yield folder


def _stems(names: Sequence[str]) -> list[str]:
    """What the files of each model begin with, no two alike."""
    stems: list[str] = []
    for name in names:
        stems.append(free_name(file_stem(name), {stem.lower() for stem in stems}))
    return stems


def _stages(
    stem: str,
    plan: PipelinePlan,
    number: int,
    parts: Sequence[Segment],
    weights_ms: Sequence[float],
) -> ModelStages:
    graph, stages = plan.graphs[number], []
    for index, segment in enumerate(parts):
        found = plan.figures[number].stages[index]
        stages.append(
            StageFile(
                f"{stem}_stage_{index}_of_{plan.stages}.tflite",
                hashlib.sha256(segment.data).hexdigest(),
                segment.inputs,
                segment.outputs,
                found.operators,
                found.param_bytes,
                found.spill_bytes,
                found.streamed_bytes,
                found.in_bytes,
                found.out_bytes,
                sum(weights_ms[i] for i in found.operators),
                found.time_ms,
                sum(graph.ops[i].compiled_bytes for i in found.operators),
                index == plan.host,
                plan.board if index == plan.mcu else "",
            )
        )
    return ModelStages(stem, parts[0].inputs, parts[-1].outputs, tuple(stages))


def _manifest(folder: PipelineFolder) -> dict[str, Any]:
    content = asdict(folder)
    del content["path"]
    return {"format": FORMAT, "version": VERSION, **content}


def read_folder(path: Path) -> PipelineFolder:
    """The pipeline in a folder whose files are all there and unchanged.

    Raises InputError, naming the file, otherwise.
    """
    manifest = path / MANIFEST
    check_whole(path, "split the model again")
    if not manifest.exists():
        raise InputError(
            f"{path} holds no {MANIFEST}; make it with `thimble edgetpu split MODEL -o {path}`"
        )
    try:
        read = record(_Manifest, read_json(manifest), str(manifest))
        _check_manifest(read, str(manifest))
    except InputError as error:
        raise InputError(f"no pipeline: {error}; split the model again") from error
    folder = PipelineFolder(
        path,
        read.objective,
        read.stages,
        read.cost,
        read.models,
        read.weights_ms,
        read.kinds,
        read.period_ms,
    )
    for model in folder.models:
        for stage in model.stages:
            check_file(path / stage.file, stage.sha256)
    return folder


@dataclass(frozen=True)
class _Manifest:
    """`pipeline.json`."""

    format: str
    version: int
    objective: str
    stages: int
    cost: EdgeTpuCost
    models: tuple[ModelStages, ...]
    weights_ms: tuple[tuple[float, ...], ...]
    kinds: tuple[tuple[str, ...], ...]
    period_ms: float


def _check_manifest(read: _Manifest, where: str) -> None:
    """Raises InputError where what it says cannot be."""
    if (read.format, read.version) != (FORMAT, VERSION):
        raise InputError(f"{where}: another format or version")
    if not read.models or any(len(model.stages) != read.stages for model in read.models):
        raise InputError(f"{where}: stages are missing")
    if not len(read.models) == len(read.weights_ms) == len(read.kinds):
        raise InputError(f"{where}: weights_ms and kinds are of other models")
    rates = [value for value in asdict(read.cost).values() if not isinstance(value, bool)]
    if min(rates) <= 0 or read.period_ms < 0:
        raise InputError(f"{where}: a rate of the cost is not above 0")
    for place, (model, weights) in enumerate(zip(read.models, read.weights_ms, strict=True)):
        if min(weights, default=0.0) < 0 or len(weights) != len(read.kinds[place]):
            raise InputError(f"{where}: weights_ms[{place}] is no list of times, one an operator")
        for number, stage in enumerate(model.stages):
            at = f"{where}: models[{place}]: stages[{number}]"
            if "\0" in stage.file:
                raise InputError(f"{at}: {stage.file!r} names no file")
            if Path(stage.file).name != stage.file:
                raise InputError(f"{at}: {stage.file!r} lies outside the folder")
            if any(not 0 <= index < len(weights) for index in stage.operators):
                raise InputError(f"{at}: operators names one that is not there")
            sizes = (stage.param_bytes, stage.spill_bytes, stage.streamed_bytes, stage.in_bytes)
            times = (stage.out_bytes, stage.arithmetic_ms, stage.time_ms, stage.compiled_bytes)
            if min(*sizes, *times) < 0:
                raise InputError(f"{at}: a size or time is negative")


def check_file(path: Path, sha256: str) -> None:
    """Raises InputError for a file that is not there, or not what was written."""
    try:
        data = read_bounded(path, LARGEST_FILE_BYTES)
    except InputError as error:
        raise InputError(f"{error}; split the model again") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"{path} is not what was split: its hash differs; split the model again")
