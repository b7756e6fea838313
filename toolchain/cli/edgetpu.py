"""`thimble edgetpu`: pipelines of Coral Edge TPUs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from toolchain.cli import _completion as completion
from toolchain.cli._command import Command
from toolchain.cli._console import output_console, progress
from toolchain.cli._json import JsonOption, check_apart, write_json, write_text
from toolchain.cli._options import ForceOption, per_cent
from toolchain.cli._page import HtmlOption, command_line
from toolchain.edgetpu import compiler, emit_c, pictures, pipeline, report
from toolchain.edgetpu.backends import BACKENDS, output_names
from toolchain.edgetpu.cost import EdgeTpuCost, HostCost
from toolchain.edgetpu.figures import BALANCES
from toolchain.edgetpu.folder import PipelineFolder, read_folder
from toolchain.edgetpu.page import of_plan, of_simulation, pipeline_page
from toolchain.edgetpu.planning import Options, PipelinePlan
from toolchain.edgetpu.planning import plan as make_plan
from toolchain.edgetpu.profile import profile_json, profile_of, read_profile
from toolchain.edgetpu.sticks import apart, best_of, plans_up_to
from toolchain.errors import InputError, MissingToolError, ResultError
from toolchain.files import check_folder, replaced_file, write_file
from toolchain.progress import Report

group = typer.Typer(
    help="Pipelines of Coral Edge TPUs: plan, split, run, simulate, profile.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL",
        help="Int8 .tflite files (or, to plan only, neutral graph summaries). Several are planned "
        "together, on the same sticks.",
        autocompletion=completion.models,
    ),
]
Stages = Annotated[str, typer.Option("--stages", "-n", help="Number of sticks, or `auto`.")]
MaxSticks = Annotated[
    int, typer.Option("--max-sticks", min=1, max=64, help="Most sticks that `--stages auto` tries.")
]
Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        help="`period` (predicted time between results), or a list of `params`, `spill`, `comm` in "
        "order of priority; or a baseline: `greedy` (Edge TPU Compiler), `contiguous`.",
    ),
]
BalanceBy = Annotated[
    str,
    typer.Option(
        "--balance-by", help=f"Parameter bytes as in the file, or compiled: {', '.join(BALANCES)}."
    ),
]
Slack = Annotated[
    str,
    typer.Option(
        metavar="PERCENT",
        help="How much each objective may worsen for the next: 5% or 5; below 1 with its sign, "
        "0.5%.",
    ),
]
Together = Annotated[
    bool,
    typer.Option(
        "--same-stage-children", help="Keep the readers of a tensor in one stage; costs balance."
    ),
]
CacheMib = Annotated[
    float, typer.Option("--cache-mib", min=0.0, max=1024.0, help="Parameter cache of a stick, MiB.")
]
Seconds = Annotated[
    float,
    typer.Option(
        min=0.1,
        help="Work limit of the solver for each objective, in seconds that it takes on one core of "
        "a desktop computer. No clock is read: the plan is the same on every machine.",
    ),
]
HostSpeed = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="GMACS|FILE",
        help="Let the processor beside the sticks run one stage, where that is faster: its speed, "
        "10^9 products a second on one core, or a profile that `profile --backend cpu --fast` "
        "measured.",
    ),
]
ProfileFile = Annotated[
    Path | None,
    typer.Option(
        "--profile", metavar="FILE", help="Measured times, from `thimble edgetpu profile`."
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of `thimble edgetpu split`.")]
Backend = Annotated[str, typer.Option(help=f"What runs the stages: {', '.join(BACKENDS)}.")]
Device = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="The stick of each stage: usb:0,usb:1,... or pci:0,..."),
]
Inputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="FILE",
        help=".npy with one frame, or one in each row; once per input. Default: random frames.",
    ),
]
_DEFAULT_CACHE_MIB = 7.7
_LEAST_GMACS, _MOST_GMACS = 0.001, 100_000


class Emit(StrEnum):
    """The languages of `--emit`."""

    C = "c"


_MOST_SLACK = 10.0


def _options(
    objective: str,
    balance_by: str,
    slack: str,
    together: bool,
    cache_mib: float,
    seconds: float,
    profile: Path | None,
    host: str | None,
) -> Options:
    """Raises InputError for an unknown name."""
    if balance_by not in BALANCES:
        raise InputError(f"--balance-by {balance_by}: there are {', '.join(BALANCES)}")
    times = None
    cost = EdgeTpuCost()
    if profile is not None:
        measured = read_profile(profile)
        times, cost = measured.times_ms, measured.cost
    if profile is None or cache_mib != _DEFAULT_CACHE_MIB:
        cost = replace(cost, cache_bytes=int(cache_mib * (1 << 20)))
    share = per_cent(slack, "--slack")
    if share > _MOST_SLACK:
        raise InputError(f"--slack {slack}: at most {_MOST_SLACK:.0%}")
    beside = None if host is None else _host(host)
    if beside is not None and together:
        raise InputError("--host and --same-stage-children: give one of them")
    return Options(objective, balance_by, cost, share, together, seconds, times, beside)


def _host(text: str) -> HostCost:
    """The host by its speed, or as measured. Raises InputError for what is neither."""
    try:
        speed = float(text)
    except ValueError:
        measured = read_profile(Path(text))
        if measured.backend != "cpu":
            raise InputError(
                f"--host {text}: measured on {measured.backend}; use `thimble edgetpu profile DIR "
                "--backend cpu --fast`"
            ) from None
        return HostCost(times_ms=measured.times_ms)
    if not _LEAST_GMACS <= speed <= _MOST_GMACS:
        raise InputError(
            f"--host {text}: a speed of {_LEAST_GMACS} to {_MOST_GMACS:,} (10^9 products a second)"
        )
    return HostCost(macs_per_ms=speed * 1e6)


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
    models: Models,
    stages: Stages = "auto",
    max_sticks: MaxSticks = 8,
    objective: Objective = "period",
    balance_by: BalanceBy = "file",
    slack: Slack = "0%",
    same_stage_children: Together = False,
    cache_mib: CacheMib = _DEFAULT_CACHE_MIB,
    seconds: Seconds = 60.0,
    profile: ProfileFile = None,
    host: HostSpeed = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw the plan.")
    ] = None,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Assign operators to stages, one stick each, and say what is proved about the result.

    Example: `thimble edgetpu plan model.tflite --stages 4 --objective params,spill,comm`
    """
    options = _options(
        objective, balance_by, slack, same_stage_children, cache_mib, seconds, profile, host
    )
    with progress() as step:
        found, plans = _planned(models, stages, max_sticks, options, step)
        free = None
        if same_stage_children:
            step("comparing with children in any stage")
            free = make_plan(
                found.graphs, found.stages, replace(options, same_stage_children=False)
            )
        without_host = None
        if host is not None:
            step("comparing with sticks alone")
            without_host = _without_host(found, plans, stages, options)
        separate = None
        if len(models) > 1 and objective == "period":
            step("comparing with sticks of their own")
            separate = apart(found.graphs, found.stages, options)
    if json:
        fields = report.plan_json(found)
        if plans:
            fields["sticks"] = [
                {"stages": p.stages, "period_ms": p.totals.period_ms} for p in plans
            ]
        if free is not None:
            fields["children_in_any_stage"] = report.totals_json(free)
        if without_host is not None:
            fields["without_host"] = report.totals_json(without_host)
        if separate is not None:
            fields["apart"] = {
                "sticks": list(separate.sticks),
                "period_ms": separate.period_ms,
            }
        write_json(json, fields)
    if picture is not None:
        drawn = pictures.sticks_svg(plans, found) if plans else pictures.stages_svg(found)
        write_file(picture, drawn)
    if html:
        write_text(html, pipeline_page(of_plan(found, plans, command_line())))
    if "-" in (json, html):
        return
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
    if len(models) > 1 and objective == "period":
        console.print(report.apart_line(found, separate), soft_wrap=True)


@group.command("split", cls=Command)
def split_command(
    models: Models,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write.")],
    stages: Stages = "auto",
    max_sticks: MaxSticks = 8,
    objective: Objective = "period",
    balance_by: BalanceBy = "file",
    slack: Slack = "0%",
    same_stage_children: Together = False,
    cache_mib: CacheMib = _DEFAULT_CACHE_MIB,
    seconds: Seconds = 60.0,
    profile: ProfileFile = None,
    host: HostSpeed = None,
    emit: Annotated[
        Emit | None,
        typer.Option(
            help="`c`: also write DIR/c, a C program of the pipeline: threads, bounded queues, "
            "frames from a file, a pipe or a function; CMake.",
        ),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = None,
) -> None:
    """Write a .tflite file for each stage, and pipeline.json; compile them where possible.

    DIR is written completely or not at all, with a list of its files. An earlier split there is
    replaced; files that were added or changed since are never lost: see --force.

    Example: `thimble edgetpu split model.tflite --stages 3 -o stages`
    """
    options = _options(
        objective, balance_by, slack, same_stage_children, cache_mib, seconds, profile, host
    )
    check_apart(json, out)
    check_folder(out, force=force, inputs=models)
    if emit is not None:
        emit_c.check_emit(len(models))
    console = output_console()
    with progress() as step:
        found, _ = _planned(models, stages, max_sticks, options, step)
        step("splitting")
        reports: list[tuple[compiler.CompilerReport, ...]] = []
        refusals: list[ResultError] = []

        program: list[str] = []

        def compile_stages(fresh: PipelineFolder) -> None:
            if emit is not None:
                program.extend(emit_c.write_program(fresh))
            if compiler.installed():
                step("compiling")
                try:
                    reports.extend(pipeline.compile_folder(fresh))
                except ResultError as error:
                    refusals.append(error)

        folder = pipeline.split(models, found, out, force=force, finish=compile_stages)
    if json:
        files = [stage.file for model in folder.models for stage in model.stages] + program
        compiled = report.compiled_json(folder, reports) if reports else None
        fields = {**report.plan_json(found), "folder": str(out), "files": files}
        write_json(json, {**fields, "compiled": compiled})
    if json != "-":
        console.print(report.plan_table(found))
        console.print(report.totals_line(found), soft_wrap=True)
        console.print(f"{found.stages} stages and pipeline.json written to {out}.", soft_wrap=True)
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
    folder: Folder,
    inputs: Inputs = None,
    frames: Annotated[int, typer.Option(min=1, help="Number of random frames.")] = 32,
    seed: Annotated[int, typer.Option(help="For random frames.")] = 0,
    backend: Backend = "auto",
    device: Device = None,
    queue: Annotated[int, typer.Option(min=1, help="Frames that wait before a stage.")] = 1,
    fast: Annotated[
        bool, typer.Option("--fast", help="On the CPU: optimised kernels instead of reference.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.npz", help="Save all outputs.")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Run frames through the pipeline, in order, and print the time of each stage.

    Runs on sticks if there are any, otherwise on the CPU; the output says which.

    Example: `thimble edgetpu run stages --input frames.npy --out results.npz`
    """
    read = read_folder(folder)
    with progress() as step:
        step("loading")
        runner = pipeline.open_runner(read, backend, device, queue, fast)
        given, total = pipeline.frames_of(read, inputs or [], frames, seed)
        kept: list[tuple[np.ndarray, ...]] = []
        begin = time.perf_counter()
        done = 0
        for result in pipeline.run_all(runner, given):
            done += 1
            step(f"frame {done}", done, total)
            if out is not None:
                kept.append(result)
        span_ms = 1e3 * (time.perf_counter() - begin)
    if out is not None:
        _save(out, read, kept)
    fields = report.run_json(runner.backend.name, runner.times, done, span_ms)
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
    folder: Folder,
    frames: Annotated[int, typer.Option(min=2, max=100_000, help="Frames to simulate.")] = 200,
    queue: Annotated[int, typer.Option(min=1, help="Frames that an inner queue holds.")] = 1,
    arrival_ms: Annotated[
        float, typer.Option(min=0.0, help="Time between frames; 0: as fast as they are taken.")
    ] = 0.0,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw the timeline.")
    ] = None,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Predict the pipeline's timing event by event under the cost model, without sticks.

    Example: `thimble edgetpu simulate stages --picture timeline.svg`
    """
    read = read_folder(folder)
    simulation = pipeline.simulate_folder(read, frames, queue, arrival_ms)
    if json:
        write_json(json, report.simulation_json(simulation))
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
    folder: Folder,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the profile.")
    ],
    frames: Annotated[int, typer.Option(min=1, help="Frames to measure.")] = 32,
    backend: Backend = "auto",
    device: Device = None,
    fast: Annotated[bool, typer.Option("--fast", help="On the CPU: optimised kernels.")] = False,
    json: JsonOption = None,
) -> None:
    """Measure the stages, and write operator times for `plan --profile` and `split --profile`.

    Example: `thimble edgetpu profile stages -o times.json`
    """
    read = read_folder(folder)
    if backend == "pycoral":
        raise InputError("PipelinedModelRunner reports no stage times; use --backend delegate")
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
