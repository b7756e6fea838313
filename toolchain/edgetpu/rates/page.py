"""The page of a plan for rates."""

from __future__ import annotations

import math
from collections.abc import Sequence

from toolchain.edgetpu.page import VERSION, Load, Pipeline, Requests, Stage
from toolchain.edgetpu.rates.plan import Baseline, RatePlan
from toolchain.edgetpu.rates.report import proof_line, unmet_lines
from toolchain.edgetpu.rates.requests import RequestTrace
from toolchain.edgetpu.report import ranges


def of_rates(
    plan: RatePlan, trace: RequestTrace, others: Sequence[Baseline], most: float, command: str
) -> Pipeline:
    """`most` is as in `rates_json`."""
    stages = tuple(
        Stage(
            place.device,
            name,
            ranges(place.part.operators),
            place.part.param_bytes,
            place.streamed_bytes,
            place.part.in_bytes,
            place.part.out_bytes,
            place.part.fixed_ms + plan.setting.stream_ms(place.streamed_bytes),
        )
        for name, path in zip(plan.demand.names, plan.places, strict=True)
        for place in path
    )
    demand, found = plan.demand, plan.estimate
    models = tuple(
        Requests(
            name,
            demand.rates[k],
            demand.deadlines_ms[k],
            _finite(found.mean_ms[k]),
            _finite(found.tail_ms[k]),
            trace.models[k].mean_ms,
            trace.models[k].tail_ms,
            trace.models[k].worst_ms,
            trace.models[k].late,
        )
        for k, name in enumerate(demand.names)
    )
    devices = zip(found.busy, trace.busy, strict=True)
    busy = [(plan.setting.name(k), *pair) for k, pair in enumerate(devices)]
    load = Load(
        demand.objective,
        plan.score[2] if not plan.score[0] else None,
        models,
        (*busy, ("the bus", found.bus, trace.bus)),
        tuple(
            (other.name, None if other.score[0] else other.score[2], other.met) for other in others
        ),
    )
    notes = (proof_line(plan), *unmet_lines(plan, most))
    title = f"{', '.join(demand.names)} on {plan.setting.devices} devices"
    cache = plan.setting.cost.cache_bytes
    return Pipeline(VERSION, title, command, cache, 0.0, stages, notes, load=load)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
