"""The page of a pipeline: its stages, their caches and transfers, and frames on devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from toolchain.edgetpu.model.figures import StageFigures
from toolchain.edgetpu.plan.planner import PipelinePlan
from toolchain.edgetpu.plan.rates import RatePlan
from toolchain.edgetpu.run.folder import PipelineFolder, StageFile
from toolchain.edgetpu.run.simulate import Simulation
from toolchain.edgetpu.show.pictures import SHOWN_FRAMES
from toolchain.edgetpu.show.reasons import Parts, device, kinds, parts, reasons
from toolchain.edgetpu.show.report import (
    SIMULATED,
    idle_lines,
    proof_line,
    proof_lines,
    ranges,
    stall_line,
    unmet_lines,
)
from toolchain.page.render import rendered

VERSION = 1


@dataclass(frozen=True)
class Stage:
    """A stage of one model. `operators` are ranges of their numbers in the file.

    device  where it runs; '' where only the number of its device is known
    kinds   of operators, and how many, the most frequent first
    parts   of its time, by name, in milliseconds
    why     sentences
    """

    stage: int
    model: str
    operators: str
    param_bytes: int
    streamed_bytes: int
    in_bytes: int
    out_bytes: int
    time_ms: float
    device: str = ""
    kinds: tuple[tuple[str, int], ...] = ()
    parts: Parts = ()
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Frames:
    """A simulation. `stages`: milliseconds of a frame busy, streaming, waiting, starved, blocked.

    `spans`: stage, frame, begin and finish in milliseconds, of the first `shown` frames.
    """

    frames: int
    shown: int
    period_ms: float
    latency_ms: float
    first_ms: float
    hub_share: float
    stages: tuple[tuple[float, ...], ...]
    spans: tuple[tuple[int, int, float, float], ...]


@dataclass(frozen=True)
class Requests:
    """A model with requests: a second, and times in ms. `late`: the share beyond the deadline.

    Predicted times are None where a device is overloaded, `late` where there is no deadline.
    """

    model: str
    rate: float
    deadline_ms: float | None
    mean_ms: float | None
    tail_ms: float | None
    simulated_mean_ms: float
    simulated_tail_ms: float
    worst_ms: float
    late: float | None


@dataclass(frozen=True)
class Load:
    """A plan for rates. `busy`: device and the share of its time, predicted and simulated.

    `others`: other plans, the objective of each in ms, None where it is overloaded, and whether it
    meets the demand.
    """

    objective: str
    latency_ms: float | None
    models: tuple[Requests, ...]
    busy: tuple[tuple[str, float, float], ...]
    others: tuple[tuple[str, float | None, bool], ...]


@dataclass(frozen=True)
class Pipeline:
    """All that the page shows. `devices`: numbers of devices and the period that each gives.

    With a `load`, `stage` of a stage is the number of its device, and there is no period.
    """

    version: int
    title: str
    command: str
    cache_bytes: int
    period_ms: float
    stages: tuple[Stage, ...]
    notes: tuple[str, ...]
    devices: tuple[tuple[int, float], ...] = ()
    simulation: Frames | None = None
    load: Load | None = None


def _stage(number: int, model: str, one: StageFigures | StageFile) -> Stage:
    """A stage of a plan or of a folder, with the number that the page gives it."""
    return Stage(
        number,
        model,
        ranges(one.operators),
        one.param_bytes,
        one.streamed_bytes,
        one.in_bytes,
        one.out_bytes,
        one.time_ms,
    )


def of_plan(plan: PipelinePlan, plans: Sequence[PipelinePlan], command: str) -> Pipeline:
    """A plan; `plans` are those for other numbers of devices, if there are any."""
    stages = tuple(
        replace(
            _stage(number, graph.name, one),
            device=device(plan, number),
            kinds=kinds(graph, one),
            parts=parts(plan, number, one),
            why=tuple(reasons(plan, model, number)),
        )
        for model, (graph, figures) in enumerate(zip(plan.graphs, plan.figures, strict=True))
        for number, one in enumerate(figures)
    )
    return Pipeline(
        VERSION,
        _title([graph.name for graph in plan.graphs], plan.stages),
        command,
        plan.options.cost.cache_bytes,
        plan.totals.period_ms,
        stages,
        (*proof_lines(plan), *idle_lines(plan)),
        tuple((other.stages, other.totals.period_ms) for other in plans),
    )


def of_simulation(folder: PipelineFolder, simulation: Simulation, command: str) -> Pipeline:
    """A pipeline that was split, and the simulation of it."""
    stages = tuple(
        _stage(number, model.name, one)
        for model in folder.models
        for number, one in enumerate(model.stages)
    )
    shown = min(simulation.frames, SHOWN_FRAMES)
    return Pipeline(
        VERSION,
        _title([model.name for model in folder.models], folder.stages),
        command,
        folder.cost.cache_bytes,
        folder.period_ms,
        stages,
        (stall_line(simulation),),
        simulation=Frames(
            simulation.frames,
            shown,
            simulation.period_ms,
            simulation.latency_ms,
            simulation.first_ms,
            simulation.hub_share,
            tuple(
                tuple(stage[key] for key in SIMULATED.values())
                for stage in simulation.stages_json()
            ),
            tuple(
                (number, frame, begin, finish)
                for number, one in enumerate(simulation.stages)
                for frame, (begin, finish) in enumerate(one.spans[:shown])
            ),
        ),
    )


def pipeline_page(pipeline: Pipeline) -> str:
    """The page as one HTML file. Raises MissingToolError without the extra `[report]`."""
    return rendered("pipeline", asdict(pipeline), ("stages", "times", "timeline", "devices"))


def _title(names: Sequence[str], stages: int) -> str:
    return f"{', '.join(names)} on {stages} Edge TPU{'s' if stages > 1 else ''}"


def of_rates(plan: RatePlan, fields: Mapping[str, Any], command: str) -> Pipeline:
    """A plan for rates; `fields` are those of `rates_json`."""
    stages = tuple(
        _stage(visit.device, name, one)
        for name, path, figures in zip(plan.demand.names, plan.paths, plan.figures, strict=True)
        for visit, one in zip(path, figures, strict=True)
    )
    models = tuple(
        Requests(
            *(one[name] for name in ("name", "rate", "deadline_ms", "mean_ms", "p99_ms")),
            *(one["simulated"][name] for name in ("mean_ms", "p99_ms", "worst_ms", "late")),
        )
        for one in fields["models"]
    )
    load = Load(
        fields["objective"],
        plan.score.latency_ms,
        models,
        tuple(
            (one["name"], one["busy"], one["simulated_busy"])
            for one in (*fields["devices"], {"name": "the bus", **fields["bus"]})
        ),
        tuple((one["name"], one["latency_ms"], one["met"]) for one in fields["baselines"]),
    )
    notes = (proof_line(plan), *unmet_lines(plan, fields["highest_factor"]))
    title = f"{', '.join(plan.demand.names)} on {plan.setting.devices} devices"
    cache = plan.setting.cost.cache_bytes
    return Pipeline(VERSION, title, command, cache, 0.0, stages, notes, load=load)
