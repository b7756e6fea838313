"""`thimble edgetpu`: pipelines of Coral Edge TPUs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from toolchain.cli import _edgetpu_mcu as of_mcu
from toolchain.cli import _edgetpu_options as opts
from toolchain.cli import _edgetpu_rates as of_rates
from toolchain.cli._command import Command
from toolchain.cli._console import output_console, progress
from toolchain.cli._gate import FailOnOption
from toolchain.cli._json import JsonOption, check_apart, write_json, write_text
from toolchain.cli._options import ForceOption
from toolchain.cli._page import HtmlOption, command_line
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
    models: list[Path],
    stages: str,
    most: int,
    options: Options,
    step: Report,
) -> tuple[PipelinePlan, tuple[PipelinePlan, ...]]:
    """The plan, and those for other numbers of sticks where `stages` is `auto`."""
    step("reading")
    graphs = pipeline.read_graphs(models)
    if stages == "auto":
        plans = plans_up_to(graphs, most, options, step)
        return best_of(plans), plans
    if not stages.isdigit() or int(stages) < 1:
        raise InputError(f"--stages {stages}: a number of sticks, or auto")
    step("planning")
    return make_plan(graphs, int(stages), options), ()


def _without_host(
    found: PipelinePlan, plans: Sequence[PipelinePlan], stages: str, options: Options
) -> PipelinePlan:
    """The plan of as many sticks as `found` was allowed, without the host."""
    count = int(stages) if stages != "auto" else 1 + plans.index(found)
    return make_plan(found.graphs, count, replace(options, host=None))


@group.command("plan", cls=Command)
def plan_command(
    models: opts.Models,
    stages: opts.Stages = "auto",
    max_sticks: opts.MaxSticks = 8,
    objective: opts.RateObjective = None,
    balance_by: opts.BalanceBy = "file",
    slack: opts.Slack = "0%",
    same_stage_children: opts.Together = False,
    cache_mib: opts.CacheMib = opts.DEFAULT_CACHE_MIB,
    seconds: opts.Seconds = 60.0,
    profile: opts.ProfileFile = None,
    host: opts.HostSpeed = None,
    mcu: of_mcu.McuOption = None,
    link: of_mcu.LinkOption = None,
    mcu_stage: of_mcu.McuStageOption = None,
    rate: of_rates.RateOption = None,
    deadline: of_rates.DeadlineOption = None,
    arrivals: of_rates.ArrivalsOption = Arrivals.POISSON,
    requests: of_rates.RequestsOption = 20_000,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw the plan.")
    ] = None,
    fail_on: FailOnOption = None,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Assign operators to stages, one stick each, and say what is proved about the result.

    With --rate, models with requests and deadlines: the plan of the least latency, and a simulation
    of it. The exit code is 1 where the rates or deadlines cannot be met.

    Example: `thimble edgetpu plan model.tflite --stages 4 --objective params,spill,comm`; or
    `thimble edgetpu plan a.tflite b.tflite --devices 3 --rate a=15,b=30 --deadline a=100ms,b=50ms`
    """
    conditions = gates(fail_on)
    goal = objective or (objectives.DEFAULT if rate is None else objectives.RATE_OBJECTIVES[0])
    options = opts.options_of(
        goal, balance_by, slack, same_stage_children, cache_mib, seconds, profile, host
    )
    of_mcu.check_options(mcu, link, mcu_stage, rate)
    if rate is not None:
        if picture is not None or options.slack:
            raise InputError("--rate: --picture and --slack are for plans of a period")
        asked = of_rates.Asked(models, stages, max_sticks, options, rate, deadline, goal)
        of_rates.show_rates(asked, arrivals, requests, json, html, conditions)
        return
    if deadline is not None:
        raise InputError("--deadline: give the rates of requests, too, as --rate 10")
    with progress() as step:
        plans: tuple[PipelinePlan, ...] = ()
        if mcu is not None:
            found = of_mcu.planned(models, stages, options, mcu, link, mcu_stage, step)
        else:
            found, plans = _planned(models, stages, max_sticks, options, step)
        free = None
        if same_stage_children:
            step("comparing with children in any stage")
            free = make_plan(
                found.graphs, found.stages, replace(options, same_stage_children=False)
            )
        without_host = None
        if host is not None and mcu is None:
            step("comparing with sticks alone")
            without_host = _without_host(found, plans, stages, options)
        separate = None
        if len(models) > 1 and goal == objectives.DEFAULT:
            step("comparing with sticks of their own")
            separate = apart(found.graphs, found.stages, options)
    fields = documents.plan_json(found)
    if json or conditions:
        if plans:
            fields["sticks"] = [
                {"stages": p.stages, "period_ms": p.totals.period_ms} for p in plans
            ]
        if free is not None:
            fields["children_in_any_stage"] = documents.totals_json(free)
        if without_host is not None:
            fields["without_host"] = documents.totals_json(without_host)
        if separate is not None:
            fields["apart"] = {
                "sticks": list(separate.sticks),
                "period_ms": separate.period_ms,
            }
    if json:
        write_json(json, fields)
    if picture is not None:
        drawn = pictures.sticks_svg(plans, found) if plans else pictures.stages_svg(found)
        write_file(picture, drawn)
    if html:
        write_text(html, pipeline_page(of_plan(found, plans, command_line())))
    if "-" not in (json, html):
        _print_plan(found, plans, free, without_host, separate)
        if mcu is not None:
            output_console().print(report.mcu_line(found), soft_wrap=True)
    check(conditions, fields)


def _print_plan(
    found: PipelinePlan,
    plans: Sequence[PipelinePlan],
    free: PipelinePlan | None,
    without_host: PipelinePlan | None,
    separate: Apart | None,
) -> None:
    """The plan, and what it was compared with."""
    console = output_console()
    if plans:
        console.print(report.sticks_table(plans, found))
        console.print(report.sticks_line(found))
    console.print(report.plan_table(found))
    for line in report.proof_lines(found):
        console.print(line)
    console.print(report.totals_line(found), soft_wrap=True)
    if free is not None:
        console.print(report.children_line(found, free), soft_wrap=True)
    if without_host is not None:
        console.print(report.host_line(found, without_host), soft_wrap=True)
    if len(found.graphs) > 1 and found.options.objective == objectives.DEFAULT:
        console.print(report.apart_line(found, separate), soft_wrap=True)


@group.command("split", cls=Command)
def split_command(
    models: opts.Models,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write.")],
    stages: opts.Stages = "auto",
    max_sticks: opts.MaxSticks = 8,
    objective: opts.RateObjective = None,
    balance_by: opts.BalanceBy = "file",
    slack: opts.Slack = "0%",
    same_stage_children: opts.Together = False,
    cache_mib: opts.CacheMib = opts.DEFAULT_CACHE_MIB,
    seconds: opts.Seconds = 60.0,
    profile: opts.ProfileFile = None,
    host: opts.HostSpeed = None,
    mcu: of_mcu.McuOption = None,
    link: of_mcu.LinkOption = None,
    mcu_stage: of_mcu.McuStageOption = None,
    rate: of_rates.RateOption = None,
    deadline: of_rates.DeadlineOption = None,
    emit: Annotated[
        opts.Emit | None,
        typer.Option(
            help="`c`: also write DIR/c, a C program of the pipeline: threads, bounded queues, "
            "frames from a file, a pipe or a function; CMake.",
        ),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = None,
) -> None:
    """Write a .tflite file for each stage, and pipeline.json; compile them where possible.

    With --rate, the stages of the plan of the least latency, and rates.json.

    DIR is written completely or not at all, with a list of its files. An earlier split there is
    replaced; files that were added or changed since are never lost: see --force.

    Example: `thimble edgetpu split model.tflite --stages 3 -o stages`
    """
    goal = objective or (objectives.DEFAULT if rate is None else objectives.RATE_OBJECTIVES[0])
    options = opts.options_of(
        goal, balance_by, slack, same_stage_children, cache_mib, seconds, profile, host
    )
    check_apart(json, out)
    check_folder(out, force=force, inputs=models)
    of_mcu.check_options(mcu, link, mcu_stage, rate)
    if rate is not None:
        if emit is not None or options.slack:
            raise InputError("--rate: --emit c and --slack are for plans of a period")
        asked = of_rates.Asked(models, stages, max_sticks, options, rate, deadline, goal)
        of_rates.split(asked, out, force, json)
        return
    if deadline is not None:
        raise InputError("--deadline: give the rates of requests, too, as --rate 10")
    if emit is not None:
        emit_c.check_emit(len(models), mcu is not None)
    console = output_console()
    with progress() as step:
        if mcu is not None:
            found = of_mcu.planned(models, stages, options, mcu, link, mcu_stage, step)
        else:
            found, _ = _planned(models, stages, max_sticks, options, step)
        step("splitting")
        reports: list[tuple[compiler.CompilerReport, ...]] = []
        refusals: list[ResultError] = []

        program: list[str] = []
        firmware: list[str] = []

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

        folder = pipeline.split(models, found, out, force=force, finish=compile_stages)
    if json:
        files = [stage.file for model in folder.models for stage in model.stages] + program
        compiled = documents.compiled_json(folder, reports) if reports else None
        fields = {**documents.plan_json(found), "folder": str(out), "files": files}
        write_json(json, {**fields, "compiled": compiled})
    if json != "-":
        console.print(report.plan_table(found))
        console.print(report.totals_line(found), soft_wrap=True)
        console.print(f"{found.stages} stages and pipeline.json written to {out}.", soft_wrap=True)
        if firmware:
            console.print(
                f"Firmware for {found.board} written to {out / FIRMWARE}.", soft_wrap=True
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
def run_command(
    folder: opts.Folder,
    inputs: opts.Inputs = None,
    frames: Annotated[int, typer.Option(min=1, help="Number of random frames.")] = 32,
    seed: Annotated[int, typer.Option(help="For random frames.")] = 0,
    backend: opts.Backend = "auto",
    device: opts.Device = None,
    queue: Annotated[int, typer.Option(min=1, help="Frames that wait before a stage.")] = 1,
    fast: Annotated[
        bool, typer.Option("--fast", help="On the CPU: optimised kernels instead of reference.")
    ] = False,
    port: Annotated[
        str | None,
        typer.Option(help="Serial line of the microcontroller; an emulated board needs none."),
    ] = None,
    arrivals: of_rates.ArrivalsOption = Arrivals.POISSON,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.npz", help="Save all outputs.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Run frames through the pipeline, in order, and print the time of each stage.

    Runs on sticks if there are any, otherwise on the CPU; the output says which. The stages of a
    plan for rates run on the CPU, --frames requests of each model at its rate.

    Example: `thimble edgetpu run stages --input frames.npy --out results.npz`
    """
    if (folder / RATES).is_file():
        if backend not in ("auto", "cpu") or device is not None or port is not None:
            raise InputError(f"{folder}: the stages of a plan for rates run on the CPU alone")
        of_rates.run(folder, inputs or [], frames, arrivals, seed, fast, out, json)
        return
    read = read_folder(folder)
    with progress() as step:
        step("loading")
        kept: list[tuple[np.ndarray, ...]] = []
        done = 0
        with closing(pipeline.open_runner(read, backend, device, queue, fast, port)) as runner:
            given, total = pipeline.frames_of(read, inputs or [], frames, seed)
            begin = time.perf_counter()
            for result in pipeline.run_all(runner, given):
                done += 1
                step(f"frame {done}", done, total)
                if out is not None:
                    kept.append(result)
        span_ms = 1e3 * (time.perf_counter() - begin)
    if out is not None:
        _save(out, read, kept)
    fields = documents.run_json(runner.backend.name, runner.times, done, span_ms)
    if json:
        write_json(json, {**fields, "why": runner.backend.why})
    if json == "-":
        return
    console = output_console()
    console.print(f"Ran on {runner.backend.name} ({runner.backend.why}).", soft_wrap=True)
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
def simulate_command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|FILE",
            help="Folder of `thimble edgetpu split`, or what `plan --rate --json FILE` wrote.",
        ),
    ],
    frames: Annotated[int, typer.Option(min=2, max=100_000, help="Frames to simulate.")] = 200,
    queue: Annotated[int, typer.Option(min=1, help="Frames that an inner queue holds.")] = 1,
    arrival_ms: Annotated[
        float, typer.Option(min=0.0, help="Time between frames; 0: as fast as they are taken.")
    ] = 0.0,
    arrivals: Annotated[
        Arrivals, typer.Option(help="Of FILE: requests at random, or one every period.")
    ] = Arrivals.POISSON,
    requests: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Of FILE: requests to simulate.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(help="Of FILE: for the arrivals.")] = 1,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw the timeline.")
    ] = None,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Predict the pipeline's timing event by event under the cost model, without sticks.

    Example: `thimble edgetpu simulate stages --picture timeline.svg`
    """
    if folder.is_file() or (folder / RATES).is_file():
        if picture is not None or html:
            raise InputError("--picture and --html: simulate a folder of `thimble edgetpu split`")
        folder = folder if folder.is_file() else folder / RATES
        of_rates.show_simulation(folder, requests, arrivals, seed, json)
        return
    read = read_folder(folder)
    simulation = pipeline.simulate_folder(read, frames, queue, arrival_ms)
    if json:
        write_json(json, documents.simulation_json(simulation))
    if picture is not None:
        title = ", ".join(model.name for model in read.models)
        write_file(picture, pictures.timeline_svg(simulation, title))
    if html:
        write_text(html, pipeline_page(of_simulation(read, simulation, command_line())))
    if "-" in (json, html):
        return
    console = output_console()
    console.print(report.simulation_table(simulation))
    console.print(
        f"{simulation.frames} frames: {simulation.period_ms:.3f} ms between results "
        f"({1e3 / simulation.period_ms:.1f}/s), latency {simulation.latency_ms:.3f} ms, first "
        f"result after {simulation.first_ms:.3f} ms; the hub is busy {simulation.hub_share:.0%}."
    )
    console.print(report.stall_line(simulation))
    console.print(f"The plan predicted {read.period_ms:.3f} ms.")


@group.command("profile", cls=Command)
def profile_command(
    folder: opts.Folder,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the profile.")
    ],
    frames: Annotated[int, typer.Option(min=1, help="Frames to measure.")] = 32,
    backend: opts.Backend = "auto",
    device: opts.Device = None,
    fast: Annotated[bool, typer.Option("--fast", help="On the CPU: optimised kernels.")] = False,
    json: JsonOption = None,
) -> None:
    """Measure the stages, and write operator times for `plan --profile` and `split --profile`.

    Example: `thimble edgetpu profile stages -o times.json`
    """
    read = read_folder(folder)
    if backend == "pycoral":
        raise InputError("PipelinedModelRunner reports no stage times; use --backend delegate")
    if read.mcu is not None:
        raise InputError(f"{folder}: stage {read.mcu} is on a microcontroller; split without --mcu")
    with progress() as step:
        step("loading")
        runner = pipeline.open_runner(read, backend, device, 1, fast)
        if runner.times is None:
            runner = pipeline.open_runner(read, "delegate", device, 1, fast)
        given, total = pipeline.frames_of(read, [], frames)
        for done, _ in enumerate(pipeline.run_all(runner, given), 1):
            step(f"frame {done}", done, total)
    times = runner.times
    if times is None or not times.frames:
        raise MissingToolError("nothing was measured")
    stages_ms = [stage.busy_ms / stage.frames for stage in times.stages]
    measured = profile_json(profile_of(read, runner.backend.name, stages_ms))
    write_json(str(out), measured)
    if json:
        write_json(json, measured)
    if json == "-":
        return
    console = output_console()
    console.print(f"Measured on {runner.backend.name} ({runner.backend.why}).", soft_wrap=True)
    for number, stage_ms in enumerate(stages_ms):
        console.print(f"stage {number}: {stage_ms:.3f} ms a frame")
    console.print(f"{out} written; plan again with --profile {out}.")
