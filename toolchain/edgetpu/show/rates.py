"""Plans for rates as tables, sentences and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from toolchain.edgetpu.plan.demand import Demand
from toolchain.edgetpu.plan.devices import Setting, Sharing
from toolchain.edgetpu.plan.rates import Baseline, RatePlan, highest_factor
from toolchain.edgetpu.run.folder import RATES_FORMAT, VERSION
from toolchain.edgetpu.run.requests import (
    Arrivals,
    RequestTrace,
    Served,
)
from toolchain.edgetpu.show.report import ranges


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
    found, demand = plan.estimate, plan.demand
    models = []
    for number, (graph, path) in enumerate(zip(plan.graphs, plan.places, strict=True)):
        models.append(
            {
                "name": demand.names[number],
                "model": graph.name,
                "rate": demand.rates[number],
                "deadline_ms": demand.deadlines_ms[number],
                "mean_ms": _finite(found.mean_ms[number]),
                "p99_ms": _finite(found.tail_ms[number]),
                "service_ms": found.service_ms[number],
                "wait_ms": _finite(found.wait_ms[number]),
                "least_mean_ms": _finite(plan.alone[number].mean_ms),
                "least_p99_ms": _finite(plan.alone[number].tail_ms),
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
    value, bound = plan.score, plan.bound
    return {
        "format": RATES_FORMAT,
        "version": VERSION,
        "objective": demand.objective,
        "sticks": plan.setting.sticks,
        "host": plan.setting.host is not None,
        "met": plan.met,
        "latency_ms": value[2] if plan.met else None,
        "lower_bound_ms": bound[2] if bound[:2] == (0.0, 0.0) else None,
        "gap": _gap(plan) if plan.met else None,
        "proved_optimal": plan.proved_optimal,
        "proved_unmet": plan.proved_unmet,
        "highest_factor": highest_factor(plan) if most is None else most,
        "nodes": plan.nodes,
        "devices": [
            {"name": plan.setting.name(k), "busy": busy, "simulated_busy": simulated}
            for k, (busy, simulated) in enumerate(zip(found.busy, trace.busy, strict=True))
        ],
        "bus": {"busy": found.bus, "simulated_busy": trace.bus},
        "arrivals": str(arrivals),
        "models": models,
        "baselines": [
            {
                "name": other.name,
                "met": other.met,
                "load": other.estimate.load,
                "latency_ms": other.score[2] if other.score[0] == 0 else None,
                "mean_ms": [_finite(value) for value in other.estimate.mean_ms],
                "p99_ms": [_finite(value) for value in other.estimate.tail_ms],
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
        "error_ms": _finite(served.error_ms),
        "p99_ms": served.tail_ms,
        "worst_ms": served.worst_ms,
        "late": served.late,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _gap(plan: RatePlan) -> float:
    value, bound = plan.score[2], plan.bound[2]
    return max(0.0, (value - bound) / value) if value else 0.0


def stages_table(plan: RatePlan) -> Table:
    table = Table(
        title=f"{len(plan.graphs)} models by {plan.demand.objective} latency"
        if len(plan.graphs) > 1
        else f"{plan.demand.names[0]} by {plan.demand.objective} latency",
        header_style="bold",
    )
    table.add_column("model")
    table.add_column("on")
    table.add_column("operators", no_wrap=True)
    for heading in ("param B", "streamed B", "swapped B", "ms"):
        table.add_column(heading, justify="right")
    table.add_column("weights")
    words = {
        Sharing.RESIDENT: "kept",
        Sharing.DIVIDED: "share the cache",
        Sharing.SWAPPED: "swapped",
        Sharing.HOST: "",
    }
    for name, path in zip(plan.demand.names, plan.places, strict=True):
        for place in path:
            time_ms = place.part.fixed_ms + plan.setting.stream_ms(place.streamed_bytes)
            table.add_row(
                name,
                plan.setting.name(place.device),
                ranges(place.part.operators),
                f"{place.part.param_bytes:,}",
                f"{place.streamed_bytes:,}",
                f"{place.swapped_bytes:,}",
                f"{time_ms:.2f}",
                words[place.sharing],
            )
    return table


def latency_table(
    names: Sequence[str],
    rates: Sequence[float],
    deadlines_ms: Sequence[float | None],
    predicted: Sequence[tuple[float, float]],
    trace: RequestTrace,
    arrivals: Arrivals,
) -> Table:
    """Latencies by model. `predicted`: mean and 99th percentile, ms."""
    table = Table(title=f"latency, ms (simulated: {arrivals} arrivals)", header_style="bold")
    table.add_column("model")
    for heading in (
        "requests/s",
        "deadline",
        "mean",
        "simulated",
        "p99",
        "simulated",
        "worst sim.",
        "late sim.",
    ):
        table.add_column(heading, justify="right")
    rows = zip(names, rates, deadlines_ms, predicted, trace.models, strict=True)
    for name, rate, limit, (mean, tail), served in rows:
        table.add_row(
            name,
            f"{rate:g}",
            "-" if limit is None else f"{limit:g}",
            _ms(mean),
            *_simulated(served, tail, grows=not math.isfinite(mean)),
        )
    return table


def _simulated(served: Served, tail: float, *, grows: bool) -> tuple[str, ...]:
    """Cells of a model; where a device is overloaded, latency grows as long as it is simulated."""
    if grows:
        return (
            "grows",
            _ms(tail),
            "grows",
            "grows",
            "-" if served.late is None else "all in the end",
        )
    return (
        f"{served.mean_ms:.2f} ±{served.error_ms:.2f}",
        _ms(tail),
        f"{served.tail_ms:.2f}",
        f"{served.worst_ms:.1f}",
        "-" if served.late is None else f"{served.late:.2%}",
    )


def _ms(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "no end"


def plan_latency_table(plan: RatePlan, trace: RequestTrace, arrivals: Arrivals) -> Table:
    demand = plan.demand
    predicted = list(zip(plan.estimate.mean_ms, plan.estimate.tail_ms, strict=True))
    return latency_table(
        demand.names, demand.rates, demand.deadlines_ms, predicted, trace, arrivals
    )


def busy_line(setting: Setting, busy: Sequence[float], bus: float) -> str:
    parts = [f"{setting.name(k)} {share:.0%}" for k, share in enumerate(busy)]
    return f"busy: {', '.join(parts)}; the bus {bus:.0%}"


def proof_line(plan: RatePlan) -> str:
    """What is proved of the plan, under the queueing model."""
    objective = {"mean": "mean latency", "worst": "largest 99th percentile"}[plan.demand.objective]
    scope = "" if plan.all_cuts else " of the cuts of one order"
    load, late, value = plan.score
    if load:
        what, known = f"the busiest is {load:.0%} busy", f"{plan.bound[0]:.0%}"
        proved = plan.bound[0] >= 1
    elif late:
        what = f"the 99th percentile is up to {late:.2f} times its deadline"
        known = f"{plan.bound[1]:.2f} times"
        proved = plan.bound[:2] != (0.0, 0.0)
    else:
        what, known, proved = f"{objective} {value:.3f} ms", f"{plan.bound[2]:.3f} ms", True
    if plan.proved_optimal:
        return f"{what}, proved optimal under the queueing model"
    if not proved:
        return f"{what}; that no plan meets the demand is not proved{scope}"
    gap = f", gap {_gap(plan):.1%}" if plan.met else ""
    return f"{what}, lower bound{scope} {known}{gap}"


def unmet_lines(plan: RatePlan, most: float) -> list[str]:
    """What cannot be met: which model, by how much, what is busiest, and the rates that could be.
    Empty where all is met. `most` is as in `rates_json`.
    """
    if plan.met:
        return []
    demand, found = plan.demand, plan.estimate
    busiest = "the bus" if found.busiest < 0 else plan.setting.name(found.busiest)
    lines = []
    if found.load >= 1:
        users = [
            name
            for name, path in zip(demand.names, plan.places, strict=True)
            if any(_uses(place, found.busiest) for place in path)
        ]
        lines.append(
            f"{busiest} is overloaded: {found.load:.0%} of its time is asked for, by "
            f"{', '.join(users)}"
        )
    for number, limit in enumerate(demand.deadlines_ms):
        name, tail, alone = demand.names[number], found.tail_ms[number], plan.alone[number]
        if limit is None or tail <= limit:
            continue
        if alone.service_ms > limit:
            lines.append(
                f"{name}: its deadline of {limit:g} ms is below {alone.service_ms:.2f} ms, what a "
                "request takes at least with nobody else there"
            )
        elif alone.tail_ms > limit:
            lines.append(
                f"{name}: with all devices to itself, 99% of its requests take up to "
                f"{alone.tail_ms:.2f} ms at least, its deadline is {limit:g} ms"
            )
        elif math.isfinite(tail):
            lines.append(
                f"{name}: 99% of its requests take up to {tail:.2f} ms, {tail - limit:.2f} ms more "
                f"than its deadline of {limit:g} ms; {busiest} is busiest, {found.load:.0%}"
            )
    if most > 0:
        rates = ", ".join(
            f"{name} {rate * most:.3g}"
            for name, rate in zip(demand.names, demand.rates, strict=True)
        )
        lines.append(
            f"the highest rates in this proportion that a plan was found for: {rates} a second "
            f"({most:.0%})"
        )
    else:
        lines.append("no plan was found for lower rates in this proportion either")
    if plan.proved_unmet:
        lines.append("no plan meets this: proved under the queueing model")
    return lines


def _uses(place: Any, device: int) -> bool:
    if device < 0:
        return bool(place.streamed_bytes or place.swapped_bytes)
    return bool(place.device == device)


def baselines_table(plan: RatePlan, others: Sequence[Baseline]) -> Table:
    """The plan beside other ways to place the models."""
    objective = {"mean": "mean ms", "worst": "worst p99 ms"}[plan.demand.objective]
    table = Table(title="beside other plans (predicted)", header_style="bold")
    table.add_column("plan")
    for heading in (objective, "busiest"):
        table.add_column(heading, justify="right")
    table.add_column("deadlines")
    rows = [("this one", plan.estimate, plan.score)]
    rows += [(other.name, other.estimate, other.score) for other in others]
    for name, found, value in rows:
        met = "overloaded" if value[0] else ("missed" if value[1] else "met")
        latency = "no end"
        if not value[0]:
            means = zip(plan.demand.rates, found.mean_ms, strict=True)
            total = sum(plan.demand.rates)
            worst = plan.demand.objective == "worst"
            latency = f"{max(found.tail_ms) if worst else sum(r * m for r, m in means) / total:.2f}"
        table.add_row(name, latency, f"{found.load:.0%}", met)
    return table


def run_table(
    demand: Demand,
    predicted: Sequence[tuple[float, float]],
    rows: Sequence[Mapping[str, float | None]],
) -> Table:
    """Of a run: `rows` are those of `runner.latencies`; predictions are for sticks."""
    table = Table(header_style="bold")
    table.add_column("model")
    for heading in ("requests", "mean ms", "99% ms", "predicted mean", "99%"):
        table.add_column(heading, justify="right")
    for name, (mean, tail), row in zip(demand.names, predicted, rows, strict=True):
        measured = ("-" if row[k] is None else f"{row[k]:.2f}" for k in ("mean_ms", "p99_ms"))
        table.add_row(name, f"{row['requests']}", *measured, f"{mean:.2f}", f"{tail:.2f}")
    return table


def late_lines(plan: RatePlan, trace: RequestTrace) -> list[str]:
    """Deadlines that the queueing model predicts to be met, and the simulation does not."""
    rows = zip(plan.demand.names, plan.demand.deadlines_ms, trace.models, strict=True)
    return [
        f"Simulated, {served.late:.2%} of the requests of {name} miss their deadline of {limit:g} "
        f"ms, more than the 1% that may: 99% take up to {served.tail_ms:.2f} ms, predicted were "
        f"{plan.estimate.tail_ms[number]:.2f} ms."
        for number, (name, limit, served) in enumerate(rows)
        if limit is not None
        and plan.estimate.tail_ms[number] <= limit
        and served.tail_ms > limit
        and served.late
    ]


def room_line(plan: RatePlan, most: float) -> str:
    """How far the rates may grow on this plan."""
    demand = plan.demand
    each = ", ".join(
        f"{name} {rate * highest_factor(plan, k):.3g}"
        for k, (name, rate) in enumerate(zip(demand.names, demand.rates, strict=True))
    )
    together = f"all rates times {most:.2f}, or " if len(demand.names) > 1 else ""
    return f"This plan would bear {together}one alone at most: {each} a second."
