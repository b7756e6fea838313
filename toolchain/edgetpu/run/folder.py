"""The folder of a split plan: a TFLite file for each stage, and `pipeline.json` or `rates.json`.

`rates.json` is what `plan --rate --json` writes, and the files of the stages beside it; it is read
for a simulation without them, too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolchain.edgetpu.model.figures import EdgeTpuCost, HostCost, StageFigures, operator_weights_ms
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.plan.demand import MOST_RATE, Demand
from toolchain.edgetpu.plan.devices import Setting, Visit
from toolchain.edgetpu.plan.planner import PipelinePlan
from toolchain.edgetpu.plan.rates import RatePlan, Routes
from toolchain.edgetpu.run.split import Segment
from toolchain.errors import InputError
from toolchain.files import check_whole, file_stem, free_name, replaced_folder
from toolchain.files.bounded import read_bounded
from toolchain.files.formats import PIPELINE, RATES, Format
from toolchain.files.records import field_of, read_json, record
from toolchain.frontends.model_file import LARGEST_FILE_BYTES

MANIFEST = "pipeline.json"
FIRMWARE = "mcu"
"""The folder of a microcontroller's firmware."""
RATES_MANIFEST = "rates.json"
COMPILED_SUFFIX = "_edgetpu.tflite"
_FILES = "files"
_MOST_STAGES = 64


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


@dataclass(frozen=True, kw_only=True)
class _Manifest:
    """`pipeline.json`: its keys are these fields, in this order."""

    format: str
    version: int
    objective: str
    stages: int
    cost: EdgeTpuCost
    models: tuple[ModelStages, ...]
    weights_ms: tuple[tuple[float, ...], ...]
    kinds: tuple[tuple[str, ...], ...]
    period_ms: float


@dataclass(frozen=True, kw_only=True)
class PipelineFolder(_Manifest):
    """A folder and its `pipeline.json`. `weights_ms`: arithmetic of each operator, by model."""

    path: Path

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


@dataclass(frozen=True)
class RateFolder:
    """`plan`: the paths, for each stage its device; `models`: the files, in the plan's order."""

    path: Path
    plan: Routes
    models: tuple[ModelStages, ...]


@contextmanager
def written_folder(
    path: Path,
    plan: PipelinePlan,
    segments: Sequence[Sequence[Segment]],
    *,
    force: bool,
    inputs: Iterable[Path],
) -> Iterator[PipelineFolder]:
    """A folder with the stages of every model and the manifest, which becomes `path` afterwards.

    Files that edgetpu_compiler made of another split's stages never stay beside them. `force`,
    `inputs` and the errors raised are as in `replaced_folder`.
    """
    graphs, options = plan.graphs, plan.options
    weights_ms = [options.times_ms or operator_weights_ms(g, options.cost) for g in graphs]
    models = []
    for number, (name, graph) in enumerate(zip(names_of(graphs), graphs, strict=True)):
        figures = plan.figures[number]
        own = [
            (
                sum(weights_ms[number][i] for i in stage.operators),
                sum(graph.ops[i].compiled_bytes for i in stage.operators),
                index == plan.host,
                plan.board if index == plan.mcu else "",
            )
            for index, stage in enumerate(figures)
        ]
        models.append(_model(name, segments[number], figures, own))
    reserved = [s.compiled_file for model in models for s in model.stages if s.on_stick]
    with replaced_folder(path, force=force, inputs=inputs, reserved=reserved) as fresh:
        folder = PipelineFolder(
            path=fresh,
            format=PIPELINE.name,
            version=PIPELINE.version,
            objective=options.objective,
            stages=plan.stages,
            cost=options.cost,
            models=tuple(models),
            weights_ms=tuple(weights_ms),
            kinds=tuple(tuple(op.kind for op in graph.ops) for graph in graphs),
            period_ms=plan.totals.period_ms,
        )
        content = asdict(folder)
        del content["path"]
        _write(fresh / MANIFEST, models, segments, content)
        yield folder


def write_rate_folder(
    path: Path,
    plan: RatePlan,
    segments: Sequence[Sequence[Segment]],
    fields: dict[str, Any],
    *,
    force: bool,
    inputs: Iterable[Path],
) -> tuple[str, ...]:
    """The stages of every model of a plan for rates, and `rates.json`. Returns the files' names.

    `fields` is the plan's JSON; the others and the errors raised are as in `written_folder`.
    """
    host = plan.setting.sticks
    own = [[(p.part.fixed_ms, 0, p.device == host, "") for p in path] for path in plan.places]
    models = list(map(_model, plan.demand.names, segments, plan.figures, own))
    with replaced_folder(path, force=force, inputs=inputs) as fresh:
        manifest = {**fields, _FILES: [asdict(model) for model in models]}
        _write(fresh / RATES_MANIFEST, models, segments, manifest)
    return tuple(stage.file for model in models for stage in model.stages)


def _write(
    manifest: Path,
    models: Sequence[ModelStages],
    segments: Sequence[Sequence[Segment]],
    content: dict[str, Any],
) -> None:
    """The stages of all models, and the manifest beside them."""
    for model, parts in zip(models, segments, strict=True):
        for stage, segment in zip(model.stages, parts, strict=True):
            (manifest.parent / stage.file).write_bytes(segment.data)
    manifest.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def names_of(graphs: Sequence[PipelineGraph]) -> list[str]:
    """The name of each model, with which its files begin and which --rate takes; no two alike."""
    names: list[str] = []
    for graph in graphs:
        names.append(free_name(file_stem(graph.name), {name.lower() for name in names}))
    return names


def _model(
    name: str,
    parts: Sequence[Segment],
    figures: Sequence[StageFigures],
    own: Sequence[tuple[float, int, bool, str]],
) -> ModelStages:
    """`own`: the last fields of each stage but its time: arithmetic, compiled bytes, and where."""
    stages = tuple(
        StageFile(
            f"{name}_stage_{number}_of_{len(parts)}.tflite",
            hashlib.sha256(part.data).hexdigest(),
            part.inputs,
            part.outputs,
            stage.operators,
            stage.param_bytes,
            stage.spill_bytes,
            stage.streamed_bytes,
            stage.in_bytes,
            stage.out_bytes,
            arithmetic_ms,
            stage.time_ms,
            compiled_bytes,
            on_host,
            board,
        )
        for number, (part, stage, (arithmetic_ms, compiled_bytes, on_host, board)) in enumerate(
            zip(parts, figures, own, strict=True)
        )
    )
    return ModelStages(name, parts[0].inputs, parts[-1].outputs, stages)


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
        content = read_json(manifest)
        _check_kind(content, PIPELINE, str(manifest))
        read = record(_Manifest, content, str(manifest))
        _check_manifest(read, str(manifest))
    except InputError as error:
        raise InputError(f"no pipeline: {error}; split the model again") from error
    folder = PipelineFolder(path=path, **vars(read))
    for model in folder.models:
        for stage in model.stages:
            _check_file(path / stage.file, stage.sha256)
    return folder


def _check_kind(content: Any, kind: Format, where: str) -> None:
    """Raises InputError for a file of another kind, or of a version that is not read."""
    if field_of(content, "format", str, where) != kind.name:
        raise InputError(f"{where}: the format is another")
    kind.check_fields(content, where)


def _check_manifest(read: _Manifest, where: str) -> None:
    """Raises InputError where what it says cannot be."""
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
            _check_name(stage.file, at)
            if any(not 0 <= index < len(weights) for index in stage.operators):
                raise InputError(f"{at}: operators names one that is not there")
            sizes = (stage.param_bytes, stage.spill_bytes, stage.streamed_bytes, stage.in_bytes)
            times = (stage.out_bytes, stage.arithmetic_ms, stage.time_ms, stage.compiled_bytes)
            if min(*sizes, *times) < 0:
                raise InputError(f"{at}: a size or time is negative")


def _check_name(file: str, at: str) -> None:
    """Raises InputError for what is no name of a file in the folder."""
    if "\0" in file:
        raise InputError(f"{at}: {file!r} names no file")
    if Path(file).name != file:
        raise InputError(f"{at}: {file!r} lies outside the folder")


def _check_file(path: Path, sha256: str) -> None:
    """Raises InputError for a file that is not there, or not what was written."""
    try:
        data = read_bounded(path, LARGEST_FILE_BYTES)
    except InputError as error:
        raise InputError(f"{error}; split the model again") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"{path} is not what was split: its hash differs; split the model again")


def read_rate_folder(path: Path) -> RateFolder:
    """The plan and the stages in a folder whose files are all there and unchanged.

    Raises InputError, naming the file, otherwise.
    """
    check_whole(path, "split the models again")
    manifest = path / RATES_MANIFEST
    plan, where = read_plan(manifest), str(manifest)
    models = field_of(read_json(manifest), _FILES, tuple[ModelStages, ...], where)
    if tuple(model.name for model in models) != plan.demand.names:
        raise InputError(f"{where}: {_FILES} is of other models; split the models again")
    for model, visits in zip(models, plan.paths, strict=True):
        if len(model.stages) != len(visits):
            raise InputError(f"{where}: {_FILES}: {model.name} has other stages than its plan")
        for stage in model.stages:
            _check_name(stage.file, where)
            _check_file(path / stage.file, stage.sha256)
    return RateFolder(path, plan, models)


def read_plan(path: Path) -> Routes:
    """Raises InputError, naming the field, for a file that is no plan for rates."""
    where = str(path)
    try:
        content = read_json(path)
        _check_kind(content, RATES, where)
        sticks = field_of(content, "sticks", int, where)
        cost = field_of(content, "cost", EdgeTpuCost, where)
        host = HostCost() if field_of(content, "host", bool, where) else None
        if (
            not 0 < sticks <= _MOST_STAGES
            or min(cost.stream_bytes_per_ms, cost.hub_bytes_per_ms) <= 0
        ):
            raise InputError(f"{where}: sticks or cost is out of range")
        setting = Setting(sticks, cost, host)
        names, rates, deadlines, paths, predicted = [], [], [], [], []
        for k, entry in enumerate(field_of(content, "models", tuple[Any, ...], where)):
            at = f"{where}: models[{k}]"
            names.append(field_of(entry, "name", str, at))
            rates.append(field_of(entry, "rate", float, at))
            deadlines.append(field_of(entry, "deadline_ms", float | None, at))
            mean = field_of(entry, "mean_ms", float | None, at)
            tail = field_of(entry, "p99_ms", float | None, at)
            predicted.append(
                (math.inf if mean is None else mean, math.inf if tail is None else tail)
            )
            stages = field_of(entry, "stages", tuple[Any, ...], at)
            if not 0 < len(stages) <= _MOST_STAGES or not 0 < rates[-1] <= MOST_RATE:
                raise InputError(f"{at}: rate or stages is out of range")
            places = [(s, f"{at}: stages[{n}]") for n, s in enumerate(stages)]
            paths.append(tuple(_visit(stage, setting, place) for stage, place in places))
        if not names:
            raise InputError(f"{where}: models is empty")
    except InputError as error:
        raise InputError(
            f"no plan for rates: {error}; make it with `thimble edgetpu plan MODEL --rate ... "
            "--json FILE`"
        ) from error
    demand = Demand(tuple(names), tuple(rates), tuple(deadlines))
    return Routes(setting, demand, tuple(paths), tuple(predicted))


def _visit(entry: Any, setting: Setting, at: str) -> Visit:
    device = field_of(entry, "device", int, at)
    fixed = field_of(entry, "fixed_ms", float, at)
    streamed, swapped = (
        field_of(entry, name, int, at) for name in ("streamed_bytes", "swapped_bytes")
    )
    if not 0 <= device < setting.devices or not 0 <= fixed < 1e9 or min(streamed, swapped) < 0:
        raise InputError(f"{at}: device, fixed_ms or a size is out of range")
    return Visit(device, fixed, setting.stream_ms(streamed), setting.stream_ms(swapped))
