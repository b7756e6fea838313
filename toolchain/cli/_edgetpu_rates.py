"""`thimble edgetpu plan --rate`: the plan, its simulation, and what cannot be met."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from toolchain.cli._console import output_console, progress
from toolchain.cli._json import write_json, write_text
from toolchain.cli._page import command_line
from toolchain.edgetpu import pipeline
from toolchain.edgetpu.graph import PipelineGraph
from toolchain.edgetpu.page import pipeline_page
from toolchain.edgetpu.planning import Options
from toolchain.edgetpu.rates import report
from toolchain.edgetpu.rates.demand import Demand, demand_of
from toolchain.edgetpu.rates.page import of_rates
from toolchain.edgetpu.rates.plan import (
    RatePlan,
    baselines,
    highest_factor,
    highest_planned,
    plan_rates,
    simulate_plan,
)
from toolchain.edgetpu.rates.requests import Arrivals
from toolchain.errors import InputError, ResultError
from toolchain.files import file_stem, free_name
from toolchain.progress import Report
from toolchain.report.gates import Gate, check

RateOption = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="LIST",
        help="Requests a second of each model, by name: a=15,b=30 (one number: of every model). "
        "The plan then minimises latency under a queueing model; --objective is `mean` (default) "
        "or `worst`.",
    ),
]
DeadlineOption = Annotated[
    str | None,
    typer.Option(
        "--deadline",
        metavar="LIST",
        help="With --rate: the time in which 99% of a model's requests must be done: "
        "a=100ms,b=50ms.",
    ),
]
ArrivalsOption = Annotated[
    Arrivals,
    typer.Option(
        "--arrivals",
        help="With --rate, in the simulation: requests at random (`poisson`), or one every period.",
    ),
]
RequestsOption = Annotated[
    int,
    typer.Option(
        "--requests", min=100, max=1_000_000, help="With --rate: requests that are simulated."
    ),
]


def show_rates(
    models: Sequence[Path],
    stages: str,
    most: int,
    options: Options,
    rate: str,
    deadline: str | None,
    objective: str,
    arrivals: Arrivals,
    requests: int,
    json: str | None,
    html: str | None,
    conditions: Sequence[Gate],
) -> None:
    """Plan, simulate and print. Raises ResultError where the demand cannot be met, GateError for
    what --fail-on says.
    """
    with progress() as step:
        step("reading")
        graphs = pipeline.read_graphs(models)
        demand = demand_of(_names(graphs), rate, deadline, objective)
        found = _planned(graphs, stages, most, options, demand, step)
        step("simulating")
        trace = simulate_plan(found, requests, arrivals)
        step("comparing")
        others = baselines(graphs, found.setting.sticks, options, demand)
        factor = highest_factor(found)
        if not found.met:
            step("looking for rates that could be met")
            factor = highest_planned(found, options)
    fields = report.rates_json(found, trace, arrivals, others, factor)
    if json:
        write_json(json, fields)
    if html:
        write_text(html, pipeline_page(of_rates(found, trace, others, factor, command_line())))
    if "-" not in (json, html):
        console = output_console()
        console.print(report.stages_table(found))
        console.print(report.plan_latency_table(found, trace, arrivals))
        console.print(report.baselines_table(found, others))
        busy, bus = found.estimate.busy, found.estimate.bus
        console.print(report.busy_line(found.setting, busy, bus), soft_wrap=True)
        console.print(report.proof_line(found), soft_wrap=True)
        if found.met:
            console.print(report.room_line(found, factor), soft_wrap=True)
        for line in report.late_lines(found, trace):
            console.print(line, soft_wrap=True)
    check(conditions, fields)
    unmet = report.unmet_lines(found, factor)
    if unmet:
        raise ResultError("this cannot be met: " + ";\n  ".join(unmet))


def show_simulation(
    file: Path, requests: int, arrivals: Arrivals, seed: int, json: str | None
) -> None:
    """Simulate a plan that was written with --json."""
    read = report.read_plan(file)
    trace = read.simulate(requests, arrivals, seed)
    if json:
        names = read.demand.names
        write_json(
            json,
            {
                "backend": "simulation",
                "arrivals": str(arrivals),
                "busy": list(trace.busy),
                "bus": trace.bus,
                "models": [
                    {"name": name, **report.served_json(served)}
                    for name, served in zip(names, trace.models, strict=True)
                ],
            },
        )
    if json == "-":
        return
    console = output_console()
    demand = read.demand
    console.print(
        report.latency_table(
            demand.names, demand.rates, demand.deadlines_ms, read.predicted, trace, arrivals
        )
    )
    console.print(report.busy_line(read.setting, trace.busy, trace.bus), soft_wrap=True)


def _names(graphs: Sequence[PipelineGraph]) -> list[str]:
    """What --rate calls the models, no two alike."""
    names: list[str] = []
    for graph in graphs:
        names.append(free_name(file_stem(graph.name), {name.lower() for name in names}))
    return names


def _planned(
    graphs: Sequence[PipelineGraph],
    stages: str,
    most: int,
    options: Options,
    demand: Demand,
    step: Report,
) -> RatePlan:
    """The plan for a number of sticks; with `auto` for the fewest that meet the demand."""
    if stages != "auto":
        if not stages.isdigit() or not 1 <= int(stages) <= 64:
            raise InputError(f"--stages {stages}: a number of sticks, or auto")
        step("planning")
        return plan_rates(graphs, int(stages), options, demand)
    for sticks in range(1, most + 1):
        step(f"{sticks} of {most} sticks")
        found = plan_rates(graphs, sticks, options, demand)
        if found.met:
            break
    return found
