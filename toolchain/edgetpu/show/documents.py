"""Plans, runs and simulations as JSON: what `--json` writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from toolchain.edgetpu.plan.planner import PipelinePlan
from toolchain.edgetpu.plan.rates import Baseline, RatePlan, highest_factor
from toolchain.edgetpu.run.compiler import CompilerReport, differences
from toolchain.edgetpu.run.folder import (
    ModelStages,
    PipelineFolder,
    StageFile,
)
from toolchain.edgetpu.run.runner import RunTimes
from toolchain.edgetpu.run.simulate import Arrivals, RequestTrace, Served, Simulation
from toolchain.files.formats import RATES

_MEANS = ("busy_ms", "queue_ms", "transfer_ms", "blocked_ms")
"""Times of a stage that a run tells by frame."""


def plan_json(plan: PipelinePlan) -> dict[str, Any]:
    """`stages` is a list for one model, a list per model if there are several."""
    models = [[asdict(stage) for stage in figures] for figures in plan.figures]
    return {
        "models": [graph.name for graph in plan.graphs],
        "objective": plan.options.objective,
        "stages": models[0] if len(models) == 1 else models,
        **asdict(plan.totals),
        "sticks": plan.sticks,
        "host_stage": plan.host,
        "mcu_stage": plan.mcu,
        "board": plan.board or None,
        "cache_bytes": plan.options.cost.cache_bytes,
        "balance_by": plan.options.balance,
        "proved_optimal": plan.proved_optimal,
        "proofs": [
            {
                "objective": proof.objective,
                "value": proof.value,
                "lower_bound": proof.bound,
                "gap": proof.gap,
                "optimal": proof.optimal,
            }
            for proof in plan.proofs
        ],
        "seconds": plan.seconds,
    }


def rates_json(
    plan: RatePlan,
    trace: RequestTrace,
    arrivals: Arrivals,
    others: Sequence[Baseline],
    most: float | None,
) -> dict[str, Any]:
    """`most`: the largest factor on all rates for which a plan was found, where the demand is not
    met. Latencies are null where a device is overloaded.
    """
    predicted, demand = plan.estimate, plan.demand
    models = []
    for number, (graph, path) in enumerate(zip(plan.graphs, plan.places, strict=True)):
        models.append(
            {
                "name": demand.names[number],
                "model": graph.name,
                "rate": demand.rates[number],
                "deadline_ms": demand.deadlines_ms[number],
                "mean_ms": finite(predicted.mean_ms[number]),
                "p99_ms": finite(predicted.tail_ms[number]),
                "service_ms": predicted.service_ms[number],
                "wait_ms": finite(predicted.wait_ms[number]),
                "least_mean_ms": finite(plan.alone[number].mean_ms),
                "least_p99_ms": finite(plan.alone[number].tail_ms),
                "highest_rate": demand.rates[number] * highest_factor(plan, number),
                "simulated": served_json(trace.models[number]),
                "stages": [
                    {
                        "device": place.device,
                        "on": plan.setting.name(place.device),
                        "operators": list(place.part.operators),
                        "fixed_ms": place.part.fixed_ms,
                        "param_bytes": place.part.param_bytes,
                        "in_bytes": place.part.in_bytes,
                        "out_bytes": place.part.out_bytes,
                        "sharing": str(place.sharing),
                        "streamed_bytes": place.streamed_bytes,
                        "swapped_bytes": place.swapped_bytes,
                    }
                    for place in path
                ],
            }
        )
    return {
        "format": RATES.name,
        "version": RATES.version,
        "objective": demand.objective,
        "sticks": plan.setting.sticks,
        "host": plan.setting.host is not None,
        "met": plan.met,
        "latency_ms": plan.score.objective_ms if plan.met else None,
        "lower_bound_ms": plan.bound.objective_ms if plan.bound.met else None,
        "gap": plan.gap if plan.met else None,
        "proved_optimal": plan.proved_optimal,
        "proved_unmet": plan.proved_unmet,
        "highest_factor": highest_factor(plan) if most is None else most,
        "nodes": plan.nodes,
        "devices": [
            {"name": plan.setting.name(k), "busy": busy, "simulated_busy": simulated}
            for k, (busy, simulated) in enumerate(zip(predicted.busy, trace.busy, strict=True))
        ],
        "bus": {"busy": predicted.bus, "simulated_busy": trace.bus},
        "arrivals": str(arrivals),
        "models": models,
        "baselines": [
            {
                "name": other.name,
                "met": other.score.met,
                "load": other.estimate.load,
                "latency_ms": other.score.latency_ms,
                "mean_ms": [finite(value) for value in other.estimate.mean_ms],
                "p99_ms": [finite(value) for value in other.estimate.tail_ms],
            }
            for other in others
        ],
        "cost": asdict(plan.setting.cost),
        "seconds": plan.seconds,
    }


def served_json(served: Served) -> dict[str, Any]:
    return {
        "requests": served.requests,
        "mean_ms": served.mean_ms,
        "error_ms": finite(served.error_ms),
        "p99_ms": served.tail_ms,
        "worst_ms": served.worst_ms,
        "late": served.late,
    }


def finite(value: float) -> float | None:
    """None for what has no end."""
    return value if math.isfinite(value) else None


def compiled_json(
    folder: PipelineFolder, reports: Sequence[Sequence[CompilerReport]]
) -> list[list[dict[str, Any]]]:
    """edgetpu_compiler's reports: a list per model with an entry for each stage."""
    return [
        [
            {
                "stage": place,
                "on_chip_bytes": column[number].on_chip_bytes,
                "off_chip_bytes": column[number].off_chip_bytes,
                "operators_on_cpu": column[number].processor_operations,
                "differences": list(differences(stage, column[number])),
            }
            for (place, stage), column in zip(_on_sticks(model), reports, strict=True)
        ]
        for number, model in enumerate(folder.models)
    ]


def _on_sticks(model: ModelStages) -> list[tuple[int, StageFile]]:
    return [(place, stage) for place, stage in enumerate(model.stages) if stage.on_stick]


def simulation_json(simulation: Simulation) -> dict[str, Any]:
    return {
        "backend": "simulation",
        "frames": simulation.frames,
        "period_ms": simulation.period_ms,
        "latency_ms": simulation.latency_ms,
        "first_ms": simulation.first_ms,
        "hub_share": simulation.hub_share,
        "stages": simulation.stages_json(),
    }


def run_json(backend: str, times: RunTimes | None, frames: int, span_ms: float) -> dict[str, Any]:
    if times is None:  # Google's runner measures nothing inside
        return {
            "backend": backend,
            "frames": frames,
            "period_ms": span_ms / frames if frames else 0.0,
            "latency_ms": None,
            "stages": [],
        }
    return {
        "backend": backend,
        "frames": times.frames,
        "period_ms": times.period_ms,
        "latency_ms": times.mean_latency_ms,
        "first_ms": times.first_ms,
        "stages": [
            {
                **{name: getattr(stage, name) / max(1, stage.frames) for name in _MEANS},
                "slowest_ms": stage.slowest_ms,
            }
            for stage in times.stages
        ],
    }
