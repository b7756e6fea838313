"""`thimble edgetpu` with --rate: the plan, its simulation, what cannot be met; its stages, run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from toolchain.cli._console import output_console, progress
from toolchain.cli._edgetpu_options import (
    FrameOptions,
    PipelineOptions,
    RequestOptions,
    RunnerOptions,
)
from toolchain.cli._output import Output, tell_json, write_json, write_text
from toolchain.cli._page import command_line
from toolchain.edgetpu import pipeline
from toolchain.edgetpu.plan.demand import Options, demand_of
from toolchain.edgetpu.plan.rates import (
    RatePlan,
    baselines,
    highest_factor,
    highest_planned,
    plan_rates,
)
from toolchain.edgetpu.run.folder import RATES_MANIFEST as MANIFEST
from toolchain.edgetpu.run.folder import names_of, read_plan, read_rate_folder
from toolchain.edgetpu.run.frames import (
    frames_by_model,
    latencies,
    outputs_of,
    paired,
    requests_of,
)
from toolchain.edgetpu.run.runner import Answer
from toolchain.edgetpu.run.simulate import Arrivals, simulate_plan
from toolchain.edgetpu.show import documents, report
from toolchain.edgetpu.show.page import of_rates, pipeline_page
from toolchain.errors import ResultError
from toolchain.files import replaced_file
from toolchain.progress import Report
from toolchain.report.gates import check, gates


def _planned(
    models: Sequence[Path], asked: PipelineOptions, options: Options, step: Report
) -> RatePlan:
    """The plan for a number of sticks; with `auto` for the fewest that meet the demand."""
    step("reading")
    graphs = pipeline.read_graphs(models)
    demand = demand_of(names_of(graphs), str(asked.rate), asked.deadline, asked.goal)
    count = asked.sticks()
    if count is not None:
        step("planning")
        return plan_rates(graphs, count, options, demand)
    for sticks in range(1, asked.max_sticks + 1):
        step(f"{sticks} of {asked.max_sticks} sticks")
        planned = plan_rates(graphs, sticks, options, demand)
        if planned.met:
            break
    return planned


def show_rates(
    models: Sequence[Path],
    asked: PipelineOptions,
    options: Options,
    arrivals: Arrivals,
    requests: int,
    output: Output,
) -> None:
    """Plan, simulate and print. Raises ResultError where the demand cannot be met, GateError for
    what --fail-on says.
    """
    conditions = gates(output.fail_on)
    with progress() as step:
        planned = _planned(models, asked, options, step)
        step("simulating")
        trace = simulate_plan(planned, requests, arrivals)
        step("comparing")
        others = baselines(planned, options)
        factor = highest_factor(planned)
        if not planned.met:
            step("looking for rates that could be met")
            factor = highest_planned(planned, options)
    fields = documents.rates_json(planned, trace, arrivals, others, factor)
    if output.json:
        write_json(output.json, fields)
    if output.html:
        write_text(output.html, pipeline_page(of_rates(planned, fields, command_line())))
    if output.has_tables:
        console = output_console()
        console.print(report.stages_table(planned))
        console.print(report.latency_table(planned, trace, arrivals))
        console.print(report.baselines_table(planned, others))
        busy, bus = planned.estimate.busy, planned.estimate.bus
        console.print(report.busy_line(planned.setting, busy, bus), soft_wrap=True)
        console.print(report.proof_line(planned), soft_wrap=True)
        if planned.met:
            console.print(report.room_line(planned, factor), soft_wrap=True)
        for line in report.late_lines(planned, trace):
            console.print(line, soft_wrap=True)
    check(conditions, fields)
    unmet = report.unmet_lines(planned, factor)
    if unmet:
        raise ResultError("this cannot be met: " + ";\n  ".join(unmet))


def split(
    models: Sequence[Path],
    asked: PipelineOptions,
    options: Options,
    out: Path,
    force: bool,
    json: str | None,
) -> None:
    """Write the stages of a plan. Raises ResultError, and writes nothing, where the demand cannot
    be met.
    """
    with progress() as step:
        planned = _planned(models, asked, options, step)
        if not planned.met:
            step("looking for rates that could be met")
            unmet = report.unmet_lines(planned, highest_planned(planned, options))
            raise ResultError("this cannot be met, nothing is split: " + ";\n  ".join(unmet))
        step("simulating")
        trace = simulate_plan(planned)
        fields = documents.rates_json(planned, trace, Arrivals.POISSON, (), None)
        step("splitting")
        files = pipeline.split_rates(models, planned, fields, out, force=force)
    if not tell_json(json, {**fields, "folder": str(out), "files": list(files)}):
        return
    console = output_console()
    console.print(report.stages_table(planned))
    console.print(report.latency_table(planned, trace, Arrivals.POISSON))
    console.print(f"{len(files)} stages and {MANIFEST} written to {out}.", soft_wrap=True)


def run(
    path: Path,
    asked: FrameOptions,
    arrivals: Arrivals,
    runner: RunnerOptions,
    out: Path | None,
    json: str | None,
) -> None:
    """Run requests through the stages that `split` wrote, on the processor."""
    folder = read_rate_folder(path)
    demand = folder.plan.demand
    with progress() as step:
        step("loading")
        running = pipeline.open_rate_runner(folder, runner.fast, runner.timeout)
        given = frames_by_model(folder, asked.inputs or [], asked.frames, asked.seed)
        requests = requests_of(demand.rates, [len(each) for each in given], arrivals, asked.seed)
        answers: list[Answer] = []
        begin = time.perf_counter()
        with closing(running.run(paired(requests, given))) as coming:  # type: ignore[type-var]
            for answer in coming:
                answers.append(answer)
                step(f"request {len(answers)}", len(answers), len(requests))
        span_ms = 1e3 * (time.perf_counter() - begin)
    if out is not None:
        with replaced_file(out) as file:
            np.savez(file, **outputs_of(folder, answers))  # type: ignore[arg-type]
    busy = {
        folder.plan.setting.name(k): times.busy_ms / span_ms
        for k, times in running.by_device.items()
    }
    rows = latencies(answers, len(folder.models))
    fields = {
        "backend": "cpu",
        "arrivals": str(arrivals),
        "span_ms": span_ms,
        "busy": busy,
        "models": [{"name": n, **row} for n, row in zip(demand.names, rows, strict=True)],
    }
    if not tell_json(json, fields):
        return
    console = output_console()
    console.print("Ran on the processor, a thread for each device.")
    console.print(report.requests_table(folder.plan, rows))
    shares = ", ".join(f"{name} {share:.0%}" for name, share in busy.items())
    console.print(f"{len(answers)} requests in {span_ms / 1e3:.2f} s. Busy: {shares}.")


def show_simulation(file: Path, asked: RequestOptions, json: str | None) -> None:
    """Simulate a plan that was written with --json."""
    read = read_plan(file)
    trace = simulate_plan(read, asked.requests, asked.arrivals, asked.seed)
    if json:
        names = read.demand.names
        write_json(
            json,
            {
                "backend": "simulation",
                "arrivals": str(asked.arrivals),
                "busy": list(trace.busy),
                "bus": trace.bus,
                "models": [
                    {"name": name, **documents.served_json(served)}
                    for name, served in zip(names, trace.models, strict=True)
                ],
            },
        )
    if json == "-":
        return
    console = output_console()
    console.print(report.latency_table(read, trace, asked.arrivals))
    console.print(report.busy_line(read.setting, trace.busy, trace.bus), soft_wrap=True)
