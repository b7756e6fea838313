"""The folder of a split plan for rates: a TFLite file for each stage, and `rates.json`.

`rates.json` is what `plan --rate --json` writes, and the files of the stages beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolchain.edgetpu.model.rules import broken_rules
from toolchain.edgetpu.plan.devices import Place
from toolchain.edgetpu.plan.rates import RatePlan
from toolchain.edgetpu.run.folder import ModelStages, StageFile, check_file
from toolchain.edgetpu.run.split import Segment, split_file
from toolchain.edgetpu.show.rates import ReadPlan, read_plan
from toolchain.errors import InputError
from toolchain.files import check_whole, replaced_folder
from toolchain.files.records import field_of, read_json
from toolchain.frontends import read_model_file

MANIFEST = "rates.json"
_FILES = "files"


@dataclass(frozen=True)
class RateFolder:
    """`plan`: the paths, for each stage its device; `models`: the files, in the plan's order."""

    path: Path
    plan: ReadPlan
    models: tuple[ModelStages, ...]


def split_rates(
    paths: Sequence[Path], plan: RatePlan, fields: dict[str, Any], out: Path, *, force: bool = False
) -> tuple[str, ...]:
    """Write the stages of every model of a plan, and `rates.json`. Returns the files' names.

    `fields` is the plan's JSON. Raises InputError for a summary, which has no model, for a plan
    that cannot run, and for a folder that may not or cannot be written.
    """
    models: list[ModelStages] = []
    data: dict[str, bytes] = {}
    for name, path, graph, places in zip(
        plan.demand.names, paths, plan.graphs, plan.places, strict=True
    ):
        stage_of = [0] * len(graph.ops)
        for number, place in enumerate(places):
            for index in place.part.operators:
                stage_of[index] = number
        broken = broken_rules(graph, tuple(stage_of), len(places))
        if len(places) > 1 and broken:
            raise InputError(f"{graph.name}: this plan cannot run: {broken[0]}")
        content = read_model_file(path)
        if content[4:8] != b"TFL3":
            raise InputError(f"{path} is a summary of a graph; only a .tflite file can be split")
        parts = split_file(content, graph, stage_of, len(places))
        stages = tuple(
            _stage(f"{name}_stage_{number}_of_{len(places)}.tflite", segment, place, plan)
            for number, (segment, place) in enumerate(zip(parts, places, strict=True))
        )
        models.append(ModelStages(name, parts[0].inputs, parts[-1].outputs, stages))
        data |= {stage.file: part.data for stage, part in zip(stages, parts, strict=True)}
    with replaced_folder(out, force=force, inputs=paths) as fresh:
        for file, content in data.items():
            (fresh / file).write_bytes(content)
        manifest = {**fields, _FILES: [asdict(model) for model in models]}
        text = json.dumps(manifest, indent=1) + "\n"
        (fresh / MANIFEST).write_text(text, encoding="utf-8")
    return tuple(data)


def _stage(file: str, segment: Segment, place: Place, plan: RatePlan) -> StageFile:
    part, cost = place.part, plan.setting.cost
    return StageFile(
        file,
        hashlib.sha256(segment.data).hexdigest(),
        segment.inputs,
        segment.outputs,
        part.operators,
        part.param_bytes,
        max(0, part.param_bytes - cost.cache_bytes),
        place.streamed_bytes,
        part.in_bytes,
        part.out_bytes,
        part.fixed_ms,
        part.fixed_ms + plan.setting.stream_ms(place.streamed_bytes),
        0,
        place.device == plan.setting.sticks,
    )


def read_rate_folder(path: Path) -> RateFolder:
    """The plan and the stages in a folder whose files are all there and unchanged.

    Raises InputError, naming the file, otherwise.
    """
    check_whole(path, "split the models again")
    manifest = path / MANIFEST
    plan, where = read_plan(manifest), str(manifest)
    models = field_of(read_json(manifest), _FILES, tuple[ModelStages, ...], where)
    if tuple(model.name for model in models) != plan.demand.names:
        raise InputError(f"{where}: {_FILES} is of other models; split the models again")
    for model, visits in zip(models, plan.paths, strict=True):
        if len(model.stages) != len(visits):
            raise InputError(f"{where}: {_FILES}: {model.name} has other stages than its plan")
        for stage in model.stages:
            if Path(stage.file).name != stage.file or "\0" in stage.file:
                raise InputError(f"{where}: {stage.file!r} lies outside the folder")
            check_file(path / stage.file, stage.sha256)
    return RateFolder(path, plan, models)
