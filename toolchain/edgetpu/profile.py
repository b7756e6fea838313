"""Stage times that a run measured, as times of operators for the next plan.

As the profiling partitioner of libcoral does, but on operators: a stage's measured time is shared
out among its operators, and the planner then weighs measured milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolchain.edgetpu.cost import PROCESSOR, EdgeTpuCost
from toolchain.edgetpu.folder import PipelineFolder
from toolchain.errors import InputError

FORMAT = "thimble-edgetpu-profile"


@dataclass(frozen=True)
class Profile:
    """Measured milliseconds of each operator of one model, and where they were measured."""

    model: str
    backend: str
    kinds: tuple[str, ...]
    times_ms: tuple[float, ...]

    @property
    def cost(self) -> EdgeTpuCost:
        """The rest of the cost model that goes with these times."""
        return PROCESSOR if self.backend == "cpu" else EdgeTpuCost()


def profile_of(folder: PipelineFolder, backend: str, stages_ms: Sequence[float]) -> Profile:
    """Share each stage's measured milliseconds among its operators by their predicted work.

    Raises InputError for a pipeline of several models, whose times cannot be told apart.
    """
    if len(folder.models) != 1:
        raise InputError("a profile is of one model; split each model on its own to measure it")
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
        "format": FORMAT,
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
    """Raises InputError where the file is no profile."""
    try:
        content = json.loads(path.read_text())
        if content["format"] != FORMAT:
            raise ValueError("another format")
        times = tuple(float(entry["count"]) for entry in content["operators"])
        kinds = tuple(str(entry["kind"]) for entry in content["operators"])
        if any(not 0 <= t < 1e7 for t in times):
            raise ValueError("an operator's time is no time")
        return Profile(str(content["model"]), str(content["board"]), kinds, times)
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is no profile of an Edge TPU pipeline ({error}); "
            "make it with `thimble edgetpu profile DIR`"
        ) from error
