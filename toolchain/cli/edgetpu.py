"""`thimble edgetpu`: pipelines of Coral Edge TPUs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from toolchain.cli import _edgetpu_mcu as of_mcu
from toolchain.cli import _edgetpu_options as opts
from toolchain.cli import _edgetpu_rates as of_rates
from toolchain.cli._command import Command
from toolchain.cli._console import output_console, progress
from toolchain.cli._groups import REQUIRED, argument, grouped, option, without
from toolchain.cli._options import ForceOption
from toolchain.cli._output import JsonOption, Output, check_apart, tell_json, write_json, write_text
from toolchain.cli._page import command_line
from toolchain.edgetpu import pipeline
from toolchain.edgetpu.plan import demand as objectives
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import Apart, PipelinePlan, apart, best_of, plans_up_to
from toolchain.edgetpu.plan.planner import plan as make_plan
from toolchain.edgetpu.run import compiler, emit_c
from toolchain.edgetpu.run.backends import output_names
from toolchain.edgetpu.run.folder import FIRMWARE, PipelineFolder, read_folder
from toolchain.edgetpu.run.folder import RATES_MANIFEST as RATES
from toolchain.edgetpu.run.profile import profile_json, profile_of
from toolchain.edgetpu.run.simulate import Arrivals
from toolchain.edgetpu.show import documents, pictures, report
from toolchain.edgetpu.show.page import of_plan, of_simulation, pipeline_page
from toolchain.errors import InputError, MissingToolError, ResultError
from toolchain.files import check_folder, replaced_file, write_file
from toolchain.progress import Report
from toolchain.report.gates import check, gates

group = typer.Typer(
    help="Pipelines of Coral Edge TPUs: plan, split, run, simulate, profile.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


def _planned(
    models: list[Path], asked: opts.PipelineOptions, options: Options, step: Report
) -> tuple[PipelinePlan, tuple[PipelinePlan, ...]]:
    """The plan, and those for other numbers of sticks where `stages` is `auto`, without --mcu."""
    if asked.mcu is not None:
        return of_mcu.planned(models, asked, asked.mcu, options, step), ()
    step("reading")
    graphs = pipeline.read_graphs(models)
    sticks = asked.sticks()
    if sticks is None:
        plans = plans_up_to(graphs, asked.max_sticks, options, step)
        return best_of(plans), plans
    step("planning")
    return make_plan(graphs, sticks, options), ()


def _without_host(
    planned: PipelinePlan, plans: Sequence[PipelinePlan], sticks: int | None, options: Options
) -> PipelinePlan:
    """The plan of as many sticks as `planned` was allowed, without the host."""
    count = sticks or 1 + plans.index(planned)
    return make_plan(planned.graphs, count, replace(options, host=None))


@group.command("plan", cls=Command)
@grouped
def plan_command(
    models: opts.Models,
    *,
    asked: opts.PipelineOptions,
    arrivals: opts.ArrivalsOption = Arrivals.POISSON,
    requests: int = option(
        20_000, "With --rate: requests that are simulated.", least=100, most=1_000_000
    ),
    picture: Path | None = option(None, "Draw the plan.", unit="FILE.svg"),
    output: Output,
) -> None:
    """Assign operators to stages, one stick each, and say what is proved about the result.

    With --rate, models have requests and deadlines: the result is the plan of the least latency,
    and a simulation of it. Exits 1 if the rates or deadlines cannot be met.

    Example: `thimble edgetpu plan model.tflite --stages 4 --objective params,spill,comm`; or
    `thimble edgetpu plan a.tflite b.tflite --devices 3 --rate a=15,b=30 --deadline a=100ms,b=50ms`
    """
    conditions, options = gates(output.fail_on), asked.options()
    asked.check()
    if asked.rate is not None:
        if picture is not None or options.slack:
            raise InputError("--rate: --picture and --slack are for plans of a period")
        of_rates.show_rates(models, asked, options, arrivals, requests, output)
        return
    with progress() as step:
        planned, plans = _planned(models, asked, options, step)
        free = None
        if options.same_stage_children:
            step("comparing with children in any stage")
            free = make_plan(
                planned.graphs, planned.stages, replace(options, same_stage_children=False)
            )
        without_host = None
        if options.host is not None and asked.mcu is None:
            step("comparing with sticks alone")
            without_host = _without_host(planned, plans, asked.sticks(), options)
        separate = None
        if len(models) > 1 and asked.goal == objectives.DEFAULT:
            step("comparing with sticks of their own")
            separate = apart(planned.graphs, planned.stages, options)
    fields = documents.plan_json(planned)
    if plans:
        fields["sticks"] = [{"stages": p.stages, "period_ms": p.totals.period_ms} for p in plans]
    if free is not None:
        fields["children_in_any_stage"] = asdict(free.totals)
    if without_host is not None:
        fields["without_host"] = asdict(without_host.totals)
    if separate is not None:
        fields["apart"] = {"sticks": list(separate.sticks), "period_ms": separate.period_ms}
    if output.json:
        write_json(output.json, fields)
    if picture is not None:
        drawn = pictures.sticks_svg(plans, planned) if plans else pictures.stages_svg(planned)
        write_file(picture, drawn)
    if output.html:
        write_text(output.html, pipeline_page(of_plan(planned, plans, command_line())))
    if output.has_tables:
        _print_plan(planned, plans, free, without_host, separate)
        if asked.mcu is not None:
            output_console().print(report.mcu_line(planned), soft_wrap=True)
    check(conditions, fields)


def _print_plan(
    planned: PipelinePlan,
    plans: Sequence[PipelinePlan],
    free: PipelinePlan | None,
    without_host: PipelinePlan | None,
    separate: Apart | None,
) -> None:
    """The plan, and what it was compared with."""
    console = output_console()
    if plans:
        console.print(report.sticks_table(plans, planned))
        console.print(report.sticks_line(plans, planned))
    console.print(report.plan_table(planned))
    for line in report.proof_lines(planned):
        console.print(line)
    console.print(report.totals_line(planned), soft_wrap=True)
    for line in report.idle_lines(planned):
        console.print(line, soft_wrap=True)
    if free is not None:
        console.print(report.children_line(planned, free), soft_wrap=True)
    if without_host is not None:
        console.print(report.host_line(planned, without_host), soft_wrap=True)
    if len(planned.graphs) > 1 and planned.options.objective == objectives.DEFAULT:
        console.print(report.apart_line(planned, separate), soft_wrap=True)


@group.command("split", cls=Command)
@grouped
def split_command(
    models: opts.Models,
    out: Path = option(REQUIRED, "Where to write.", "-o", unit="DIR"),
    *,
    asked: opts.PipelineOptions,
    emit: opts.Emit | None = option(
        None,
        "`c`: also write DIR/c, a C program of the pipeline: threads, bounded queues, "
        "frames from a file, a pipe or a function; CMake.",
    ),
    force: ForceOption = False,
    json: JsonOption = None,
) -> None:
    """Write a .tflite file for each stage, and pipeline.json; compile them where possible.

    With --rate, it writes the stages of the plan of the least latency, and rates.json.

    DIR is written completely or not at all, with a list of its files. An earlier split in DIR is
    replaced. Files that were added or changed are never lost: see --force.

    Example: `thimble edgetpu split model.tflite --stages 3 -o stages`
    """
    options = asked.options()
    check_apart(json, out)
    check_folder(out, force=force, inputs=models)
    asked.check()
    if asked.rate is not None:
        if emit is not None or options.slack:
            raise InputError("--rate: --emit c and --slack are for plans of a period")
        of_rates.split(models, asked, options, out, force, json)
        return
    if emit is not None:
        emit_c.check_emit(len(models), asked.mcu is not None)
    console = output_console()
    with progress() as step:
        planned, _ = _planned(models, asked, options, step)
        step("splitting")
        reports: list[tuple[compiler.CompilerReport, ...]] = []
        refusals: list[ResultError] = []

        program: list[str] = []
        firmware: list[str] = []
        rejected: list[str] = []

        def compile_stages(fresh: PipelineFolder) -> None:
            if emit is not None:
                program.extend(emit_c.write_program(fresh))
            if of_mcu.write_firmware(fresh, step) is not None:
                firmware.append(FIRMWARE)
            if compiler.installed():
                step("compiling")
                try:
                    reports.extend(pipeline.compile_folder(fresh))
                except ResultError as error:
                    refusals.append(error)

        folder = pipeline.split(
            models, planned, out, force=force, finish=compile_stages, tell=rejected.append
        )
    if json:
        files = [stage.file for model in folder.models for stage in model.stages] + program
        compiled = documents.compiled_json(folder, reports) if reports else None
        fields = {**documents.plan_json(planned), "folder": str(out), "files": files}
        write_json(json, {**fields, "compiled": compiled})
    if json != "-":
        console.print(report.plan_table(planned))
        console.print(report.totals_line(planned), soft_wrap=True)
        for line in (*report.idle_lines(planned), *rejected):
            console.print(line, soft_wrap=True)
        console.print(
            f"{planned.stages} stages and pipeline.json written to {out}.", soft_wrap=True
        )
        if firmware:
            console.print(
                f"Firmware for {planned.board} written to {out / FIRMWARE}.", soft_wrap=True
            )
        if program:
            console.print(f"A C program of them written to {out / emit_c.FOLDER}.", soft_wrap=True)
        if reports:
            for line in report.compiled_lines(folder, reports):
                console.print(line, soft_wrap=True)
        elif not refusals:
            console.print(compiler.HOW_TO_GET + ".", soft_wrap=True)
    if refusals:
        raise refusals[0]


@group.command("run", cls=Command)
@grouped
def run_command(
    folder: opts.Folder,
    *,
    given: opts.FrameOptions,
    runner: opts.RunnerOptions,
    arrivals: opts.ArrivalsOption = Arrivals.POISSON,
    out: Path | None = option(None, "Save all outputs.", "-o", unit="FILE.npz"),
    json: JsonOption = None,
) -> None:
    """Run frames through the pipeline, in order, and print the time of each stage.

    Runs on sticks if there are any, otherwise on the CPU; the output says which. The stages of a
    plan for rates run on the CPU, --frames requests of each model at its rate.

    Example: `thimble edgetpu run stages --input frames.npy --out results.npz`
    """
    if (folder / RATES).is_file():
        if runner.backend not in ("auto", "cpu") or runner.device or runner.port:
            raise InputError(f"{folder}: the stages of a plan for rates run on the CPU alone")
        of_rates.run(folder, given, arrivals, runner, out, json)
        return
    read = read_folder(folder)
    with progress() as step:
        step("loading")
        kept: list[tuple[np.ndarray, ...]] = []
        done = 0
        with closing(runner.open(read)) as running:
            frames, total = pipeline.frames_of(read, given.inputs or [], given.frames, given.seed)
            begin = time.perf_counter()
            for result in running.run(frames):
                done += 1
                step(f"frame {done}", done, total)
                if out is not None:
                    kept.append(result)
        span_ms = 1e3 * (time.perf_counter() - begin)
    if out is not None:
        _save(out, read, kept)
    fields = documents.run_json(running.backend.name, running.times, done, span_ms)
    if not tell_json(json, {**fields, "why": running.backend.why}):
        return
    console = output_console()
    console.print(f"Ran on {running.backend.name} ({running.backend.why}).", soft_wrap=True)
    console.print(report.run_table(fields))
    period, latency = fields["period_ms"], fields["latency_ms"]
    latency_text = "" if latency is None else f", latency {latency:.3f} ms"
    console.print(
        f"{done} frames, {period:.3f} ms between results ({1e3 / period:.1f}/s){latency_text}."
        if period
        else f"{done} frames{latency_text}."
    )


def _save(path: Path, folder: PipelineFolder, results: list[tuple[np.ndarray, ...]]) -> None:
    names = output_names(folder)
    columns = {
        name: np.stack(values)
        for name, values in zip(names, zip(*results, strict=True), strict=True)
    }
    with replaced_file(path) as file:
        np.savez(file, **columns)  # type: ignore[arg-type]


@group.command("simulate", cls=Command)
@grouped
def simulate_command(
    folder: Path = argument(
        "DIR|FILE", "Folder of `thimble edgetpu split`, or the JSON of `plan --rate --json FILE`."
    ),
    *,
    frames: int = option(200, "Frames to simulate.", least=2, most=100_000),
    queue: int = option(1, "Frames that an inner queue holds.", least=1),
    arrival_ms: float = option(
        0.0, "Time between frames; 0: as fast as the pipeline takes them.", least=0.0
    ),
    of_file: opts.RequestOptions,
    picture: Path | None = option(None, "Draw the timeline.", unit="FILE.svg"),
    output: Annotated[Output, without("fail_on")],
) -> None:
    """Predict the pipeline's timing event by event under the cost model, without sticks.

    Example: `thimble edgetpu simulate stages --picture timeline.svg`
    """
    if folder.is_file() or (folder / RATES).is_file():
        if picture is not None or output.html:
            raise InputError("--picture and --html: simulate a folder of `thimble edgetpu split`")
        folder = folder if folder.is_file() else folder / RATES
        of_rates.show_simulation(folder, of_file, output.json)
        return
    read = read_folder(folder)
    simulation = pipeline.simulate_folder(read, frames, queue, arrival_ms)
    if output.json:
        write_json(output.json, documents.simulation_json(simulation))
    if picture is not None:
        title = ", ".join(model.name for model in read.models)
        write_file(picture, pictures.timeline_svg(simulation, title))
    if output.html:
        write_text(output.html, pipeline_page(of_simulation(read, simulation, command_line())))
    if not output.has_tables:
        return
    console = output_console()
    console.print(report.simulation_table(simulation))
    console.print(
        f"{simulation.frames} frames: {simulation.period_ms:.3f} ms between results "
        f"({1e3 / simulation.period_ms:.1f}/s), latency {simulation.latency_ms:.3f} ms, first "
        f"result after {simulation.first_ms:.3f} ms; {report.hub_words(simulation)}."
    )
    console.print(report.stall_line(simulation))
    console.print(f"The plan predicted {read.period_ms:.3f} ms.")


@group.command("profile", cls=Command)
@grouped
def profile_command(
    folder: opts.Folder,
    out: Path = option(REQUIRED, "Where to write the profile.", "-o", unit="FILE"),
    *,
    frames: int = option(32, "Frames to measure.", least=1),
    runner: Annotated[opts.RunnerOptions, without("queue", "port")],
    json: JsonOption = None,
) -> None:
    """Measure the stages, and write operator times for `plan --profile` and `split --profile`.

    Example: `thimble edgetpu profile stages -o times.json`
    """
    read = read_folder(folder)
    if runner.backend == "pycoral":
        raise InputError("PipelinedModelRunner reports no stage times; use --backend delegate")
    if read.mcu is not None:
        raise InputError(f"{folder}: stage {read.mcu} is on a microcontroller; split without --mcu")
    with progress() as step:
        step("loading")
        running = runner.open(read)
        if running.times is None:
            running = replace(runner, backend="delegate").open(read)
        given, total = pipeline.frames_of(read, [], frames)
        for done, _ in enumerate(running.run(given), 1):
            step(f"frame {done}", done, total)
    times = running.times
    if times is None or not times.frames:
        raise MissingToolError("nothing was measured")
    stages_ms = [stage.busy_ms / stage.frames for stage in times.stages]
    measured = profile_json(profile_of(read, running.backend.name, stages_ms))
    write_json(str(out), measured)
    if not tell_json(json, measured):
        return
    console = output_console()
    console.print(f"Measured on {running.backend.name} ({running.backend.why}).", soft_wrap=True)
    for number, stage_ms in enumerate(stages_ms):
        console.print(f"stage {number}: {stage_ms:.3f} ms a frame")
    console.print(f"{out} written; plan again with --profile {out}.")
