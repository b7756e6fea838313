"""Latency under a rate of requests: ours beside Google's cut, the least period, and one stick."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from toolchain.edgetpu.model.figures import HostCost
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.plan.demand import Demand, Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.plan.rates import (
    RatePlan,
    baselines,
    highest_factor,
    plan_rates,
)
from toolchain.edgetpu.run.simulate import simulate_plan

STICKS = 3
_LOAD = 0.5
"""Of what the plan with the least period bears."""
_SECONDS = 20.0
_REQUESTS = 40_000
TOGETHER: tuple[tuple[tuple[str, ...], int], ...] = (
    (("ResNet50", "DenseNet121"), 3),
    (("ResNet50", "DenseNet121", "Xception"), 4),
    (("ResNet101", "DenseNet169"), 4),
)


def rates(console: Console, graphs: Path, names: Sequence[str]) -> tuple[dict[str, Any], bool]:
    """Every network on three sticks, with and without a host, and several networks together."""
    cases = [((name,), STICKS) for name in names]
    cases += [case for case in TOGETHER if set(case[0]) <= set(names)]
    table = Table(title=f"mean latency, ms, at {_LOAD:.0%} of what the least period bears")
    table.add_column("models", no_wrap=True)
    for heading in (
        "n", "req/s", "on one", "greedy", "period", "ours", "bound", "sim.", "p99", "sim.", "bears",
        "+ host", "sim.", "CPU s",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    rows, good = [], True
    for models, sticks in cases:
        found = [read_graph(graphs / f"{name}.json") for name in models]
        row = _row(found, sticks)
        rows.append(row)
        others = [row[key] for key in ("all on one", "greedy", "least period")]
        ours = row["mean_ms"]
        good &= ours is not None and ours <= min(o for o in others if o is not None) * (1 + 1e-9)
        good &= row["host_mean_ms"] <= ours * (1 + 1e-9)
        table.add_row(
            " + ".join(models),
            str(sticks),
            f"{row['rate']:.1f}",
            *("no end" if other is None else f"{other:.1f}" for other in others),
            f"{ours:.1f}",
            "proved" if row["proved"] else f"{row['bound_ms']:.1f}",
            f"{row['simulated_ms']:.1f}",
            f"{row['p99_ms']:.1f}",
            f"{row['simulated_p99_ms']:.1f}",
            f"{row['bears']:.1f}",
            f"{row['host_mean_ms']:.1f}",
            f"{row['host_simulated_ms']:.1f}",
            f"{row['seconds']:.1f}",
        )
    console.print(table)
    return {"rows": rows}, good


def _row(graphs: Sequence[PipelineGraph], sticks: int) -> dict[str, Any]:
    """The same rate for each of the models."""
    options = Options(seconds=_SECONDS)
    rate = _LOAD * 1e3 / plan(graphs, sticks, Options()).totals.period_ms
    names = tuple(graph.name for graph in graphs)
    demand = Demand(names, (rate,) * len(graphs), (None,) * len(graphs))
    begin = time.process_time()
    alone = plan_rates(graphs, sticks, options, demand)
    seconds = time.process_time() - begin
    beside = plan_rates(graphs, sticks, Options(seconds=_SECONDS, host=HostCost()), demand)
    others = {other.name: other for other in baselines(alone, options)}
    mean, tail = _simulated(alone)
    return {
        "models": names,
        "sticks": sticks,
        "rate": rate,
        **{name: other.score.latency_ms for name, other in others.items()},
        "mean_ms": alone.score.objective_ms if alone.met else None,
        "bound_ms": alone.bound.objective_ms,
        "proved": alone.proved_optimal,
        "p99_ms": max(alone.estimate.tail_ms),
        "simulated_ms": mean,
        "simulated_p99_ms": tail,
        "bears": rate * highest_factor(alone),
        "bus": alone.estimate.bus,
        "host_mean_ms": beside.score.objective_ms,
        "host_bound_ms": beside.bound.objective_ms,
        "host_simulated_ms": _simulated(beside)[0],
        "seconds": seconds,
    }


def _simulated(found: RatePlan) -> tuple[float, float]:
    """Mean latency of all requests, and the largest 99th percentile of a model, ms."""
    served = simulate_plan(found, _REQUESTS).models
    count = sum(model.requests for model in served)
    mean = sum(model.requests * model.mean_ms for model in served) / count
    return mean, max(model.tail_ms for model in served)
