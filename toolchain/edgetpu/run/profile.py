"""Stage times measured in a run, as times of operators for the next plan.

A stage's measured time is divided among its operators, and the planner then balances measured
milliseconds, as libcoral's profiling partitioner does with whole stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.edgetpu.model.figures import PROCESSOR, EdgeTpuCost
from toolchain.edgetpu.run.folder import PipelineFolder
from toolchain.errors import InputError
from toolchain.files.formats import PIPELINE_PROFILE
from toolchain.files.records import field_of, read_json


@dataclass(frozen=True)
class Profile:
    """Measured milliseconds of each operator of one model, and where they were measured."""

    model: str
    backend: str
    kinds: tuple[str, ...]
    times_ms: tuple[float, ...]

    @property
    def cost(self) -> EdgeTpuCost:
        """The cost model to use with these times."""
        return PROCESSOR if self.backend == "cpu" else EdgeTpuCost()


def profile_of(folder: PipelineFolder, backend: str, stages_ms: Sequence[float]) -> Profile:
    """Divide each stage's measured milliseconds among its operators by their predicted work.

    Raises InputError for a pipeline of several models, whose times cannot be separated.
    """
    if len(folder.models) != 1:
        raise InputError("a profile is of one model; split each model on its own to measure it")
    if folder.host is not None and backend != "cpu":
        raise InputError(
            f"stage {folder.host} ran on the host, the others on sticks: times of two kinds; split "
            "without --host to measure sticks, or measure the host with --backend cpu"
        )
    if folder.mcu is not None:
        raise InputError(
            f"stage {folder.mcu} ran on a microcontroller: times of two kinds; split without --mcu"
        )
    model, weights, kinds = folder.models[0], folder.weights_ms[0], folder.kinds[0]
    times = [0.0] * len(weights)
    cost = PROCESSOR if backend == "cpu" else folder.cost
    for stage, measured in zip(model.stages, stages_ms, strict=True):
        overhead = cost.overhead_ms(
            0 if backend == "cpu" else stage.streamed_bytes, stage.in_bytes, stage.out_bytes
        )
        work = max(measured - overhead, 0.05 * measured)
        total = sum(weights[i] for i in stage.operators)
        for index in stage.operators:
            share = weights[index] / total if total else 1 / len(stage.operators)
            times[index] = work * share
    return Profile(model.name, backend, kinds, tuple(times))


def profile_json(profile: Profile) -> dict[str, Any]:
    return {
        "format": PIPELINE_PROFILE.name,
        "version": PIPELINE_PROFILE.version,
        "model": profile.model,
        "board": profile.backend,
        "unit": "ms",
        "total": sum(profile.times_ms),
        "operators": [
            {"name": str(index), "kind": kind, "count": time_ms}
            for index, (kind, time_ms) in enumerate(
                zip(profile.kinds, profile.times_ms, strict=True)
            )
        ],
    }


def read_profile(path: Path) -> Profile:
    """Read a profile. Raises InputError if the file is not one."""
    where = str(path)
    try:
        content = read_json(path)
        if field_of(content, "format", str, where) != PIPELINE_PROFILE.name:
            raise InputError(f"{where}: the format is another")
        PIPELINE_PROFILE.check_fields(content, where, default=1)
        operators = field_of(content, "operators", tuple[Any, ...], where)
        places = [(entry, f"{where}: operators[{i}]") for i, entry in enumerate(operators)]
        times = tuple(field_of(entry, "count", float, at) for entry, at in places)
        kinds = tuple(field_of(entry, "kind", str, at) for entry, at in places)
        if any(not 0 <= t < 1e7 for t in times):
            raise InputError(f"{where}: an operator's time is no time")
        model, board = (field_of(content, name, str, where) for name in ("model", "board"))
    except InputError as error:
        raise InputError(
            f"no profile of an Edge TPU pipeline: {error}; "
            "make it with `thimble edgetpu profile DIR`"
        ) from error
    return Profile(model, board, kinds, times)
